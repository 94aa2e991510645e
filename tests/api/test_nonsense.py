"""Nonsense is told in words."""

import json
import subprocess
import sys

CASES = {
    "go_rl.list_records(None)": "a store of records must be a path, not None",
    "go_rl.merge_stores(None, ['a'])": "a store of records must be a path",
    "go_rl.merge_stores('a', 'bc')": "sources must be a list of stores, not 'bc'",
    "go_rl.export_store('a', None)": "the exported file must be a path, not None",
    "go_rl.list_records('sqlite:///a?uri=true')": "options of an SQLite file",
    "go_rl.zoo_entry(['a'])": "is named by a text",
    "go_rl.methods(None)": "unknown objective 'None'",
    "go_rl.predict(graph, device=3)": "a device's name or data sheet must be a path",
    "go_rl.optimize(graph, 'ring4', finetune=10**400)": "samples must be at most",
    "go_rl.optimize(graph, 'ring4', seconds=10**400)": "seconds must be at most",
    "go_rl.optimize(graph, 'ring4', samples=1, seed=2**64)": "seed must be >= 0 and below 2^62",
    "go_rl.optimize(graph, 'p100x' + '9' * 5000)": "devices must number 1 to",
    "go_rl.optimize(graph, 'ring4', weights='/dev/zero')": "no policy weights '/dev/zero'",
    "go_rl.optimize(graph, 'ring4', samples=2).best.save(None)": "a plan's file must be a path",
    "Config(problem=3)": "problem must be a problem or several, not 3",
    "Config(problem=[None])": "problem must be a problem or several",
    "Config(graph=3)": "graph must be a file, module:function, zoo:NAME, graph or several, not 3",
    "Config(graph=graph, rules=['strict'])": "rules must be the name of a rule set",
    "Config(graph=graph, memory='yes')": "memory must be True, False or None, not 'yes'",
    "Config(graph=graph, failure_reward='low')": "failure_reward must be a number or None",
    "Config(graph=graph, max_nodes=None)": "max_nodes must be a whole number, not None",
    "Config(graph=graph, max_edges=2.5)": "max_edges must be a whole number, not 2.5",
}
PROGRAM = """
import json, sys
import go_rl
from go_rl.core.errors import GoRLError
from go_rl.envs import EnvironmentConfig as Config
graph, told = go_rl.load("zoo:gcn-3-layers"), {}
for case in json.load(sys.stdin):
    try:
        eval(case)
    except GoRLError as error:
        told[case] = str(error)
json.dump(told, sys.stdout)
"""


def test_nonsense_is_told_in_words(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=json.dumps([*CASES]), capture_output=True,
        text=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [case for case, said in CASES.items() if said not in told.get(case, "")] == []
    assert max(map(len, told.values())) < 2_000
