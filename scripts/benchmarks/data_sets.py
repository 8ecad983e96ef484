"""Which published tables are of one data set: an interval resamples data sets, because tables of one are alike."""

import re
from typing import Mapping, Tuple

OF_APPLIANCES = r"Computers|ElectricDevices|LargeKitchen|SmallKitchen|Refrigeration|ScreenType"
OF_TIME_SERIES = (
    (r"(?i)(Cricket|UWaveGestureLibrary|Ford|NonInvasiveF[ae]tal|SonyAIBO|ToeSegmentation|Worms)", r"\1"),
    (r"(EOG|Freezer|GunPoint|MixedShapes|Pig|SemgHand)", r"\1"),
    (r"Lightn?ing", "lightning"),
    (r"Face(All|sUCR)", "faces"),
    (r"Distal|Middle|Proximal|Phalanges", "hand bones"),
    (r"50words|FiftyWords|WordS", "words"),
    (OF_APPLIANCES, "appliances"),
)

DATA_SETS: Mapping[str, Tuple[Tuple[str, str], ...]] = {
    "automl": ((r"[14]h_(.+)", r"\1"),),
    "recycling": ((r"(sst|trec)", r"\1"),),
    "simba": ((r"([a-z0-9]+)_", r"\1"),),
    "tser": (
        (r"(BIDMC32|BeijingPM|Flood|GasSensorArray|HouseholdPower|News)", r"\1"),
        (r"(Binance|Bitcoin|Cardano|Ethereum)", "currencies"),
        (r"(?!Benzene)\w+Concentration$", "soil"),
        (r"(Chilled|Electricity|Hot|Steam)\w*Predictor", "buildings"),
        (r"(LPGas|Methane)Monitoring", "home activity"),
        (r"(Precipitation|SolarRadiation)Andalusia", "Andalusian weather"),
    ),
    "ucr": OF_TIME_SERIES,
    "dl4tsc_uea": (*OF_TIME_SERIES, (r"WordsSyn", "words")),
}
"""The beginnings of the names of tables that share a data set, and its name, by source.

- automl: the same data with one hour and with four.
- recycling: two labellings of one corpus. All of its tables share six models, which no interval shows.
- simba: the tasks of one simulated body.
- tser, ucr, dl4tsc_uea: targets, channels, subsets or labellings of one recording.

Every other table is a data set of its own.
"""


def data_set_of(source: str, problem: str) -> str:
    """Return the name of the data set of a published table, which contains that of its source."""
    for pattern, name in DATA_SETS.get(source, ()):
        if match := re.match(pattern, problem):
            return f"{source}: {match.expand(name).lower()}"
    return f"{source}: {problem}"
