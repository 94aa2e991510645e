"""Every golden case: a name, and how its facts are found."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from .fingerprint import Facts
from .product import environments, learners, plans, policies, predictors, problems
from .product.problems import DATA, OWN_HARDWARE, Setting

INFERENCE = (
    ("ncf", "ring6"), ("vae-3-layers", "ring6"), ("vgg16", "ring16"), ("wavenet-1x10", "ring6"),
    ("unet", "ring16"), ("resnet18", "ring36"), ("neural-ode-8", "ring6"),
    ("transformer-xl-2-layers", "ring16"), ("dlrm-kaggle", "ring6"), ("convdraw", "ring16"),
    ("mixer-s16", "ring36"), ("mobilenet-v3-small", "ring6"), ("resnet50", "ring36"),
    ("t5-small", "ring16"), ("efficientnet-b0", "ring6"), ("amoebanet-d-3-128", "ring16"),
    ("bert-base", "ring36"), ("inception-v3", "ring16"), ("moe-8-experts", "ring36"),
    ("gnmt-2-layers", "ring16"), ("densenet121", "ring6"), ("nasnet-mobile", "ring36"),
)  # fmt: skip
"""Graphs of the zoo for all objectives, smallest first, each with its ring."""
TRAINING = (
    "deep-autoencoder-training", "vgg16-training", "gcn-16-layers-training",
    "transformer-xl-2-layers-training", "resnet18-training", "wavenet-2x18-training",
    "gpt-6-layers-training", "resnet50-b8-training",
)  # fmt: skip
"""Training graphs, which no ring takes."""
SMALL = 3
"""Of the smallest graphs, those that expensive methods take."""
MIDDLE = 14
"""Of the graphs, those up to some 700 nodes."""
PROFILES = (
    "dnn-partitioning/throughput/layers/bert24_inference.json",
    "dnn-partitioning/throughput/layers/resnet50_training.json",
    "dnn-partitioning/throughput/operators/bert_l-3_inference.json",
    "dnn-partitioning/latency/layers/resnet50_inference.json",
    "dnn-partitioning/latency/operators/bert_l-3_inference.json",
)
"""dnn-partitioning JSON, which brings its own hardware."""
TEXTS = ("pipedream/alexnet.txt", "pipedream/gnmt.txt", "pipedream/resnet18.txt")
"""PipeDream profiles."""
RULES = ("strict", "replicate", "relay", "default")
DECISIONS = (
    ("placement", "schedule", "fusion"), ("placement",), ("placement", "schedule"),
    ("schedule", "fusion"), ("fusion",),
)  # fmt: skip
"""Sets of decisions for the makespan objective."""
SAMPLES = {
    "greedy": 4, "policy": 32, "random": 32, "annealing": 100, "metis": 8,
    "linear-dp": 16, "ideal-dp": 2, "dp": 16, "local-search": 20_000, "default": 1, "composed": 24,
    "expert": 1, "fusion-greedy": 1, "hdp": 12, "heft": 4, "auto": 100, "unit-annealing": 5_000,
    "order-search": 60, "order-policy": 60, "one-device": 4, "dispatch-search": 96,
    "layers-equal": 4, "layers-by-speed": 4, "fill-in-order": 4,
}  # fmt: skip
"""Budget of each method."""
EXACT_SECONDS = 2.0
"""CP-SAT counts no samples."""
PROVING = (("max-load", "local-search"),)
"""Methods that spend five seconds on a bound, whatever the budget,"""
PROVED_EVERY = 3
"""which is done for one in so many graphs."""
BY_CLOCK = ("decisions", "value", "bound", "busy", "bytes", "optimal", "samples")
BOUND_BY_CLOCK = ("bound", "optimal")


@dataclass(frozen=True)
class Case:
    """One golden result."""

    name: str
    """Kind, objective, rules or decisions, hardware, model, method: whatever tells it apart."""
    find: Callable[[], Facts]
    clocked: tuple[str, ...] = ()
    """Facts that depend on a clock."""
    data: bool = False
    """Whether it reads the public data sets, which are not shipped."""


def all_cases() -> Iterator[Case]:
    """Yield every case; those of one problem follow each other."""
    yield from _graphs()
    yield from _rings()
    yield from _devices()
    yield from _of_data()
    yield from _options()
    yield from _episodes()
    yield from _predictions()
    for name, find in (*learners.LEARNERS, *predictors.LEARNERS):
        yield Case(f"learn/{name}", find)


def _graphs() -> Iterator[Case]:
    names = [*(name for name, _ in INFERENCE), *TRAINING]
    for model in (*(f"zoo:{name}" for name in names), *JAX_MODELS):
        yield Case(f"graph/{model}", partial(problems.graph_facts, model))
    for path in (*PROFILES, *TEXTS):
        for training in (False, True) if path in TEXTS else (False,):
            find = partial(problems.graph_facts, DATA + path, training)
            yield Case(f"graph/{DATA}{path}{'+training' * training}", find, data=True)


JAX_MODELS = ("go_rl.graphs.zoo.bert:bert_base",)
"""Functions that the reader of JAX traces."""


def _rings() -> Iterator[Case]:
    for place, (name, hardware) in enumerate(INFERENCE):
        for rules in RULES:
            setting = Setting(f"zoo:{name}", "ring", hardware, rules)
            yield from plan_cases(setting, _ring_methods(place, rules))


def _ring_methods(place: int, rules: str) -> tuple[str, ...]:
    """Slow methods work on small graphs only."""
    methods = [m for m in plans.METHODS["ring"] if m != "exact" or place < 2]
    if place >= MIDDLE:
        methods.remove("ideal-dp")
    return (*methods, plans.AUTO) if place < SMALL else tuple(methods)


def _devices() -> Iterator[Case]:
    names = [name for name, _ in INFERENCE] + list(TRAINING)
    for place, name in enumerate(names):
        few = place < SMALL or name in TRAINING[:1]
        for objective in ("max-load", "latency"):
            setting = Setting(f"zoo:{name}", objective, "p100x4")
            methods = [
                m for m in plans.METHODS[objective]
                if (objective, m) not in PROVING or place % PROVED_EVERY == 0
            ]  # fmt: skip
            yield from plan_cases(setting, (*methods, *(plans.AUTO,) * few))
        for decisions in DECISIONS:
            hardware = ("p100x2", "p100x4", "a100x8")[place % 3]
            setting = Setting(f"zoo:{name}", "makespan", hardware, decisions=decisions)
            methods = [m for m in plans.METHODS["makespan"] if m != "hdp" or few]
            yield from plan_cases(setting, (*methods, *(plans.AUTO,) * few))


def _of_data() -> Iterator[Case]:
    for path in PROFILES:
        objective = "latency" if "/latency/" in path else "max-load"
        yield from plan_cases(
            Setting(DATA + path, objective, OWN_HARDWARE), plans.METHODS[objective]
        )
    for path in TEXTS:
        for rules in RULES[:2]:
            setting = Setting(DATA + path, "ring", "ring6", rules)
            yield from plan_cases(setting, ("greedy", "annealing", "linear-dp", "ideal-dp"))
        setting = Setting(DATA + path, "max-load", "p100x4", training=True)
        yield from plan_cases(setting, plans.METHODS["max-load"])
        setting = Setting(DATA + path, "makespan", "p100x2", decisions=("placement", "schedule"))
        yield from plan_cases(setting, ("default", "composed", "random", "annealing"))


def _options() -> Iterator[Case]:
    """Pins, all chips, no memory, one device, learned prices, those of ``auto``."""
    ring = Setting("zoo:resnet18", "ring", "ring6", "strict")
    cores = Setting("zoo:resnet18", "makespan", "cpu-1x4", cost="learned")
    gpus = Setting("zoo:transformer-xl-2-layers-training", "makespan", "v100x8", cost="auto")
    for setting in (
        replace(ring, all_devices=True), replace(ring, memory=False),
        replace(ring, fixed=((0, 0), (170, 5))), replace(ring, fixed=((0, 5), (170, 0))),
        replace(ring, hardware="cpu-1-ring4", cost="learned"),
    ):  # fmt: skip
        yield from plan_cases(setting, ("greedy", "annealing", "linear-dp", "random", "metis"))
    for setting in (
        cores, replace(cores, cost="analytical", fixed=((20, 3),)),
        replace(cores, hardware="cpu-1", decisions=("schedule", "fusion")),
        replace(cores, hardware="h100x8", cost="", memory=False),
        gpus, replace(gpus, hardware="a100x8", decisions=("placement",)),
    ):  # fmt: skip
        yield from plan_cases(setting, ("default", "composed", "random", "annealing"))


def _episodes() -> Iterator[Case]:
    for name, forms in environments.ENVIRONMENTS.items():
        model, hardware = "zoo:wavenet-1x10", "ring6" if name == "Partition" else "p100x4"
        for form in forms:
            for vector in (False, True) if form != "node" else (False,):
                find = partial(environments.episode_facts, name, form, model, hardware, vector)
                yield Case(f"episode/{name}/{form}{'/vector' * vector}/{model}", find)


def plan_cases(setting: Setting, methods: tuple[str, ...] | list[str]) -> Iterator[Case]:
    """Yield the prices of a problem and the plans of some methods."""
    words = _words(setting)
    data = setting.model.startswith(DATA)
    yield Case(f"prices/{words}", partial(problems.price_facts, setting), data=data)
    for method in methods:
        samples = SAMPLES.get(method)
        budget = (samples, None if samples else EXACT_SECONDS)
        find = partial(plans.plan_facts, setting, method, budget)
        yield Case(f"plan/{words}/{method}", find, _clocked(setting.objective, method), data)


def _clocked(objective: str, method: str) -> tuple[str, ...]:
    if method == "exact":
        return BY_CLOCK
    by_bound = objective == "max-load" and method in ("local-search", plans.AUTO)
    return BOUND_BY_CLOCK if by_bound else ()


def _words(setting: Setting) -> str:
    """All that tells a problem apart, with slashes between."""
    rules = setting.rules if setting.objective == "ring" else "+".join(setting.decisions)
    further = [
        f"cost={setting.cost}" * bool(setting.cost),
        f"memory={setting.memory}" * (setting.memory is not None),
        "all-devices" * setting.all_devices,
        "pins=" * bool(setting.fixed) + ",".join(f"{n}@{d}" for n, d in setting.fixed),
        "training" * setting.training,
    ]
    parts = (setting.objective, rules, setting.hardware, *further, setting.model)
    return "/".join(part for part in parts if part)


def _predictions() -> Iterator[Case]:
    rings = [Setting(f"zoo:{n}", "ring", h, "strict") for n, h in INFERENCE[:MIDDLE:3]]
    shared = [
        Setting(f"zoo:{name}", "makespan", "p100x4", decisions=DECISIONS[i % 3])
        for i, name in enumerate(("deep-autoencoder-training", "resnet18", "bert-base"))
    ]
    for kind, names, settings, find in (
        ("ring-policy", policies.RING_POLICIES, rings, policies.ring_predictions),
        ("orders-policy", policies.ORDERS_POLICIES, rings, policies.prototype_predictions),
        ("dispatch-policy", policies.DISPATCH_POLICIES, shared, policies.prototype_predictions),
    ):
        for name in names:
            for setting in settings:
                case = f"predict/{kind}/{name}/{_words(setting)}"
                yield Case(case, partial(find, name, setting))
    for model in predictors.KERNEL_SETS:
        yield Case(f"kernels/{model}", partial(predictors.kernel_set_facts, model))
        for name in predictors.kernel_models():
            find = partial(predictors.kernel_predictions, name, model)
            yield Case(f"predict/kernel-model/{name}/{model}", find)
    for name in predictors.kernel_models():
        find = partial(predictors.layout_predictions, name)
        yield Case(f"predict/kernel-model/{name}/layouts", find)
    for name in predictors.ranks():
        yield Case(f"predict/ranks/{name}/flags", partial(predictors.flag_predictions, name))
