import sys
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
VERSION = {}
exec((HERE / "fiesta_allennlp" / "version.py").read_text(encoding="utf-8"), VERSION)

RAY = "ray>=2.45"  # the first with wheels for Python 3.10 to 3.13

# What a selection among AllenNLP configs needs in addition. AllenNLP's own pins end at Python 3.10. From 3.11 on it is
# installed with --no-deps, and these are what it imports at run time and what its configs can ask for, in versions that
# work.
OF_ALLENNLP = [
    "base58>=2.1.1",
    "cached-path>=1.6",
    "dill>=0.3.4",
    "fairscale==0.4.13",
    "h5py>=3.6",
    "huggingface-hub<1",  # the last with Repository
    "lmdb>=1.2.1",
    "more-itertools>=8.12",
    "nltk>=3.6.5",
    "numpy>=2",
    "protobuf>=4.25",
    "sacremoses",
    "scikit-learn>=1.0.1",
    "sentencepiece>=0.1.96",
    "spacy>=3.8,<3.9",
    "tensorboardX>=2.5",
    "termcolor>=1.1",
    "torch>=2.3",  # the first that reads arrays of numpy 2
    "torchvision",
    "tqdm>=4.62",
    "traitlets>5.1.1",
    "transformers>=4.45,<4.46",
    "typer>=0.4.1",
    "wandb>=0.17,<0.20",
]
OPTUNA = "optuna>=4.0"  # the first with journal files in their present form
TEST = ["hypothesis>=6.100", "joblib>=1.2", OPTUNA, "pytest>=8.0", "pytest-xdist>=3.5"]


class BuildWithPages(build_py):
    """Build the package with the pages that `fiesta docs` opens."""

    def run(self):
        super().run()
        if not self.editable_mode:
            sys.path.append(str(HERE / "scripts"))
            from make_pages import write_pages

            write_pages(Path(self.build_lib, "fiesta_allennlp", "pages"))


setup(
    name="fiesta-allennlp",
    version=VERSION["__version__"],
    description="Find the best of several NLP models with as few training runs as possible",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    packages=find_packages(include=["fiesta_allennlp", "fiesta_allennlp.*"]),
    package_data={"fiesta_allennlp": ["py.typed", "reports/templates/*"]},
    cmdclass={"build_py": BuildWithPages},
    entry_points={"console_scripts": ["fiesta = fiesta_allennlp.__main__:main"]},
    python_requires=">=3.10",
    install_requires=[
        "filelock>=3.3",
        "jinja2>=3.1",
        "jsonnet>=0.20; sys_platform != 'win32'",
        "matplotlib>=3.7",
        "numpy>=1.22",
        "psutil>=5.9",
        "rich>=12.1",
        "scipy>=1.10",
    ],
    extras_require={
        "allennlp": [
            f"allennlp=={VERSION['ALLENNLP']}; python_version < '3.11'",
            "numpy<2; python_version < '3.11'",
            *(f"{requirement}; python_version >= '3.11'" for requirement in OF_ALLENNLP),
        ],
        "dev": [
            "accelerate>=1.0,<1.1; python_version >= '3.11'",  # which the Trainer of Transformers needs
            *TEST,
            "mypy==1.18.2",
            RAY,
            "ruff==0.14.5",
            "scikit-learn>=1.0.1",  # which trains the systems of a benchmark
            "statsmodels>=0.14",
        ],
        "docs": ["furo>=2025.9", "myst-parser>=5.0", "sphinx>=9.0", "sphinx-copybutton>=0.5.2"],
        "optuna": [OPTUNA],
        "ray": [RAY],
        "test": TEST,
    },
    project_urls={"Paper (FIESTA, ACL 2019)": "https://aclanthology.org/P19-1281"},
    classifiers=[
        "Development Status :: 5 - Production/Stable",
        "Environment :: Console",
        "Intended Audience :: Science/Research",
        "License :: OSI Approved :: Apache Software License",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Operating System :: POSIX",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Typing :: Typed",
    ],
)
