"""Arms that learn: predictions for programs of a device that was not learned from, with nothing
measured there, and with some of its programs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import jax
import numpy as np

from experiments.programs.cdmpp.runs import OneNetwork, trained, tuned
from experiments.programs.cross_device.setting import Setting, joined
from experiments.programs.rivals.boosted_programs import LIGHTGBM, XGBOOST, tree_rival
from go_rl.costs.programs.learn.code_trees import CONFIG as CODE_CONFIG
from go_rl.costs.programs.learn.code_trees import CodeTrees
from go_rl.costs.programs.learn.examples import ProgramExamples, ProgramInputs
from go_rl.costs.programs.learn.network import initial_program_params
from go_rl.costs.programs.learn.training import TrainedProgramNetwork

ALONE = 300
"""Updates of a network that learns the measured programs alone."""
KMEANS, RANDOM = "CDMPP, fine-tuned (k-means)", "CDMPP, fine-tuned (random)"
WITH_SOURCES = "CDMPP, fine-tuned with the sources' rows (k-means)"
BOTH = "LightGBM, sources and these"
FACTOR = "Habitat's scaling, times a factor of these"
CODE, CODE_BOTH = "trees on code (`code-trees`)", "trees on code, sources and these"
Predict = Callable[[ProgramInputs], np.ndarray]
"""[P] seconds of programs."""
Arms = dict[str, np.ndarray]
"""[E] seconds of the test programs by arm."""


def unmeasured(setting: Setting) -> Arms:
    """Return predictions by arms that learn from the sources and know the target's data sheet."""
    test, train = setting.test.inputs, setting.train
    blind = setting.networks.of(replace(train, inputs=_blind(train.inputs)), setting.config)
    cmd = tuned(setting.network, train, setting.adapt.inputs, setting.tuning)
    return {
        "CDMPP": setting.network.seconds(test),
        "CDMPP, target's inputs (CMD)": cmd.seconds(test),
        "CDMPP, blind to devices": blind.seconds(_blind(test)),
        "untrained network": _untrained(setting).seconds(test),
        "XGBoost": _trees(XGBOOST, setting, train)(test),
        "LightGBM": _trees(LIGHTGBM, setting, train)(test),
    }


def measured(setting: Setting, few: ProgramExamples) -> Arms:
    """Return predictions by arms that learn from some of the target's programs, beside those that
    every count has: CDMPP fine-tuned, and `both`."""
    test = setting.test.inputs
    alone = trained(few, replace(setting.config, steps=ALONE))
    return {
        "CDMPP, these alone": alone.seconds(test),
        "XGBoost, sources and these": _trees(XGBOOST, setting, joined((setting.train, few)))(test),
        "XGBoost, these alone": _trees(XGBOOST, setting, few)(test),
        "LightGBM, these alone": _trees(LIGHTGBM, setting, few)(test),
    }


def both(setting: Setting, few: ProgramExamples) -> np.ndarray:
    """Return [E] seconds by LightGBM, which learned the sources and measured programs."""
    return _trees(LIGHTGBM, setting, joined((setting.train, few)))(setting.test.inputs)


def by_code(setting: Setting, few: ProgramExamples | None = None) -> np.ndarray:
    """Return [E] seconds by trees on what the compiler makes of loops, where it is known of all."""
    learned = setting.train if few is None else joined((setting.train, few))
    return _code_trees(setting, learned)(setting.test.inputs)


def by_ratio(setting: Setting, few: ProgramExamples, known: Predict) -> np.ndarray:
    """Return [E] known times of the test programs times a ratio to them that trees on code learned
    from measured ones."""
    ratios = replace(few, seconds=few.seconds / known(few.inputs))
    test = setting.test.inputs
    return _code_trees(setting, ratios)(test) * known(test)


def _blind(inputs: ProgramInputs) -> ProgramInputs:
    return replace(inputs, devices=np.full_like(inputs.devices, np.nan))


def _untrained(setting: Setting) -> OneNetwork:
    config, start = setting.config, setting.network
    params = initial_program_params(config.network, jax.random.key(config.seed))
    return replace(start, network=TrainedProgramNetwork(config.network, params))


def _trees(name: str, setting: Setting, learned: ProgramExamples) -> Predict:
    return tree_rival(name, setting.trees, setting.config.seed)(learned).predict


def _code_trees(setting: Setting, learned: ProgramExamples) -> Predict:
    config = replace(CODE_CONFIG, trees=setting.trees, seed=setting.config.seed)
    return CodeTrees.fit(learned, config).predict
