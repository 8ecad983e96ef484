from importlib import import_module
from pathlib import Path


def test_the_pages_lead_to_each_other_and_name_files_of_the_repository(tmp_path: Path) -> None:
    import_module("make_pages").write_pages(tmp_path)
    assert list(import_module("check_docs").wrong_site_links(tmp_path)) == []
    index, scripts = ((tmp_path / f"{name}.html").read_text() for name in ("index", "scripts"))
    assert all(f'href="{name}.html"' in index for name in ("scripts", "quickstart", "tables", "cost", "report"))
    assert '<img src="pictures/bars.svg"' in index and "toctree" not in index
    assert 'href="index.html"' in scripts and "<table>" in scripts and 'href="../' not in scripts
    assert 'href="../report.html#a-beats-b"' in (tmp_path / "api" / "calls.html").read_text()
