from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
VERSION = {}
exec((HERE / "fiesta_allennlp" / "version.py").read_text(encoding="utf-8"), VERSION)

RAY = "ray>=2.45"  # the first with wheels for Python 3.10 to 3.13

setup(
    name="fiesta-allennlp",
    version=VERSION["__version__"],
    description="Find the best of several AllenNLP models with as few trainings as possible",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    packages=find_packages(include=["fiesta_allennlp", "fiesta_allennlp.*"]),
    package_data={"fiesta_allennlp": ["py.typed", "reports/templates/*"]},
    python_requires=">=3.10,<3.14",
    # requirements.txt pins what these resolve to on Python 3.11 to 3.13, where AllenNLP's own pins
    # have no solution. On Python 3.10 they resolve as they stand.
    install_requires=[
        "allennlp==2.10.1",
        "jinja2>=3.1",
        "joblib>=1.2",
        "matplotlib>=3.7",
        "numpy<2; python_version < '3.11'",
        "numpy>=2; python_version >= '3.11'",
        "pebble>=5.0",
        "requests>=2.28",
        "rich>=12.1",
        "scipy>=1.10",
        "tensorboardX>=2.5",
    ],
    extras_require={
        "dev": [
            "hypothesis>=6.100",
            "mypy==1.18.2",
            "psutil>=5.9",
            "pytest>=8.0",
            "pytest-xdist>=3.5",
            RAY,
            "ruff==0.14.5",
            "statsmodels>=0.14",
        ],
        "ray": [RAY],
    },
    classifiers=[
        "License :: OSI Approved :: Apache Software License",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
)
