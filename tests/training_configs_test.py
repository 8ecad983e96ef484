"""Every shipped config is read and its model built and run once, so that none can rot."""

import gzip
from pathlib import Path

import pytest
import torch
from allennlp.common import Params
from allennlp.data import DataLoader, DatasetReader, Vocabulary
from allennlp.models import Model
from allennlp.training import Trainer

from fiesta_allennlp.core.files import VARIABLE_DEFAULTS, set_default_variables
from fiesta_allennlp.models.tagged_columns import TaggedColumnsReader, spans_of

ROOT = Path(__file__).parent.parent
FIXTURE = ROOT / "tests" / "fixtures" / "tdsa" / "restaurants.xml"
SENTENCES = ROOT / "tests" / "fixtures" / "tagging" / "small.conll"
TAGGING = sorted((ROOT / "training_configs" / "tagging").glob("*.jsonnet"))
TDSA = sorted((ROOT / "training_configs" / "tdsa").glob("*.jsonnet"))
SAMPLE = sorted((ROOT / "training_configs" / "sample").glob("*.jsonnet"))
WIKIGOLD = sorted((ROOT / "training_configs" / "wikigold").glob("*.jsonnet"))
WORDS = ["soup", "bread", "wine", "n't", "adored"]


@pytest.fixture
def small_data(tmp_path, monkeypatch):
    """The fixture in place of the official files, and three files of word vectors."""
    for name in ("Restaurants_Train_v2.xml", "Restaurants_Test_Gold.xml"):
        (tmp_path / name).write_bytes(FIXTURE.read_bytes())
    for dim in (50, 200, 300):
        rows = [f"{word} " + " ".join([str(number / 8)] * dim) for number, word in enumerate(WORDS)]
        (tmp_path / f"vectors.{dim}d.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    monkeypatch.setenv("FIESTA_DATA", str(tmp_path))
    monkeypatch.setenv("FIESTA_VECTORS", str(tmp_path / "vectors.%dd.txt"))
    monkeypatch.chdir(ROOT)


@pytest.fixture
def small_tagging_data(tmp_path, monkeypatch):
    """The fixture for all three sets, and a file of word vectors."""
    row = " ".join(["0.125"] * 100)
    (tmp_path / "vectors.100d.txt").write_text(f"rome {row}\nthe {row}\n", encoding="utf-8")
    monkeypatch.setenv("FIESTA_TAGGING", ",".join([str(SENTENCES)] * 3))
    monkeypatch.setenv("FIESTA_VECTORS", str(tmp_path / "vectors.%dd.txt"))
    monkeypatch.chdir(ROOT)


def run_once(path, num_labels=3, overrides=""):
    """One forward pass over one batch; the trainer is built as well. Returns the model."""
    params = Params.from_file(str(path), overrides)
    reader = DatasetReader.from_params(params.pop("dataset_reader"))
    loader = DataLoader.from_params(params.pop("data_loader"), reader=reader, data_path=params.pop("train_data_path"))
    test_data_path = params.pop("test_data_path", None)
    test_instances = [] if test_data_path is None else reader.read(test_data_path)
    vocab = Vocabulary.from_instances([*loader.iter_instances(), *test_instances])
    loader.index_with(vocab)
    model = Model.from_params(params.pop("model"), vocab=vocab)
    output = model(**next(iter(loader)))
    assert torch.isfinite(output["loss"])
    assert output["logits"].shape[-1] == num_labels
    Trainer.from_params(params.pop("trainer"), model=model, data_loader=loader, serialization_dir=None)
    assert params.pop("evaluate_on_test", False) is (test_data_path is not None)
    params.pop("validation_data_path", None)
    params.assert_empty(str(path))
    return model


@pytest.mark.parametrize("path", TDSA, ids=lambda path: path.stem)
def test_tdsa_config(small_data, path):
    model = run_once(path)
    dim = int(path.stem.partition("_")[2] or 300)
    embedding = model._text_field_embedder.token_embedder_tokens
    assert embedding.weight.shape[1] == dim
    assert embedding.weight.requires_grad
    bread = model.vocab.get_token_index("bread")
    assert (embedding.weight[bread] == 1 / 8).all()
    assert model._dropout.p == model._variational_dropout.p == (0.0 if dim == 50 else 0.5)
    if path.stem.startswith(("atae", "ian")):
        assert (model._target_field_embedder.token_embedder_tokens.weight[bread] == 1 / 8).all()
        assert model._state_dropout.p == model._dropout.p
    params = Params.from_file(str(path)).as_dict(quiet=True)
    trainer = {"num_epochs": 100, "patience": 5, "validation_metric": "+accuracy"}
    assert params["trainer"] == {"optimizer": {"type": "adam"}, **trainer}
    assert params["data_loader"] == {"batch_size": 32, "shuffle": True, "collate_fn": "token_ids"}


@pytest.mark.parametrize("path", TAGGING, ids=lambda path: path.stem)
def test_tagging_config(small_tagging_data, path):
    characters, layer = path.stem.split("_")
    model = run_once(path, num_labels=7)
    assert type(model).__name__ == f"{layer.title()}SequenceTagger"
    embedders = model._text_field_embedder
    words = embedders.token_embedder_tokens
    assert words.weight.requires_grad
    assert (words.weight[model.vocab.get_token_index("rome")] == 0.125).all()
    assert model._encoder.get_input_dim() == (100 if characters == "word" else 150)
    assert model._encoder.get_output_dim() == 200
    assert model._dropout.p == 0.5
    assert hasattr(embedders, "token_embedder_characters") == (characters != "word")
    params = Params.from_file(str(path)).as_dict(quiet=True)
    assert params["trainer"] == {
        "optimizer": {"type": "sgd", "lr": 0.015, "weight_decay": 1e-8},
        "learning_rate_scheduler": {"type": "exponential", "gamma": 0.9524},
        "grad_clipping": 5,
        "num_epochs": 1000,
        "patience": 5,
    }
    assert (params["data_loader"]["batch_sampler"]["batch_size"], params["model"]["loss"]) == (64, "sum")


@pytest.mark.parametrize("path", SAMPLE, ids=lambda path: path.stem)
def test_sample_config(monkeypatch, path):
    monkeypatch.chdir(ROOT)
    model = run_once(path)
    embedding = model._text_field_embedder.token_embedder_tokens
    lines = (ROOT / "data" / "sample" / "vectors.25d.txt").read_text(encoding="utf-8").splitlines()
    given = {line.split(" ")[0]: [float(value) for value in line.split(" ")[1:]] for line in lines}
    for token, index in model.vocab.get_token_to_index_vocabulary().items():
        if not token.startswith("@@"):
            assert embedding.weight[index].tolist() == pytest.approx(given[token], abs=1e-6)


@pytest.mark.parametrize("path", WIKIGOLD, ids=lambda path: path.stem)
def test_wikigold_config(monkeypatch, path):
    monkeypatch.chdir(ROOT)
    model = run_once(path, num_labels=9, overrides='{"dataset_reader.max_instances": 100}')
    assert type(model).__name__ == f"{path.stem.split('_')[1].title()}SequenceTagger"
    words = model._text_field_embedder.token_embedder_tokens
    assert not words.weight.requires_grad
    the = words.weight[model.vocab.get_token_index("the")]
    assert the[:3].tolist() == pytest.approx([0.418, 0.24968, -0.41242])


def test_the_bundled_wikigold_is_whole():
    data = ROOT / "data" / "wikigold"
    reader = TaggedColumnsReader(document_prefix="-DOCSTART-", encoding="IOB1")
    sentences = reader.sentences(data / "wikigold.conll.txt")
    words = [word.lower() for sentence in sentences for word in sentence.words]
    with gzip.open(data / "glove.6B.50d.txt.gz", "rt", encoding="utf-8") as rows:
        widths = {row.split(" ", 1)[0]: row.count(" ") for row in rows}
    assert (len(sentences), len(words), len(set(words))) == (1696, 39007, 7725)
    assert len({sentence.document for sentence in sentences}) == 145
    assert sum(len(spans_of(sentence.tags)) for sentence in sentences) == 3558
    assert len(widths) == 7225 and set(widths.values()) == {50}
    assert sum(word in widths for word in words) / len(words) == pytest.approx(0.9815, abs=1e-4)


def test_the_environment_goes_before_the_defaults(monkeypatch):
    set_default_variables()
    for files in ("all", "one,two", "one,two,three"):
        monkeypatch.setenv("FIESTA_TAGGING", files)
        params = Params.from_file(str(TAGGING[0])).as_dict(quiet=True)
        named = [params.get(f"{part}_data_path") for part in ("train", "validation", "test")]
        assert [path for path in named if path is not None] == files.split(",")
        assert params["evaluate_on_test"] == ("test_data_path" in params)
    monkeypatch.setenv("FIESTA_DATA", "/elsewhere")
    monkeypatch.setenv("FIESTA_VECTORS", "some/vectors.txt")
    monkeypatch.delenv("FIESTA_TAGGING", raising=False)
    set_default_variables()
    sets, tagging = (Params.from_file(str(path)).as_dict(quiet=True) for path in (TDSA[0], TAGGING[0]))
    assert sets["train_data_path"] == "/elsewhere/Restaurants_Train_v2.xml"
    tokens = sets["model"]["text_field_embedder"]["token_embedders"]["tokens"]
    assert tokens["pretrained_file"] == "some/vectors.txt", "one file for all sizes"
    assert tagging["test_data_path"] == VARIABLE_DEFAULTS["FIESTA_TAGGING"].split(",")[2]
    monkeypatch.delenv("FIESTA_VECTORS")
    set_default_variables()
    tokens = Params.from_file(str(TDSA[0])).as_dict(quiet=True)["model"]["text_field_embedder"]["token_embedders"]
    assert tokens["tokens"]["pretrained_file"] == VARIABLE_DEFAULTS["FIESTA_VECTORS"].replace("%d", "300")
