"""Golden results: what go_rl does today, so that it can be rebuilt without doing anything else.

``python -m tests.golden record`` writes ``results.json.gz`` beside this file: the plan of every
method on some forty models under every rule set and objective, one small lesson of every learner,
the predictions of all shipped weights. ``python -m tests.golden compare`` makes the same results
with the tree as it is and shows what differs. `test_golden.py` does so for a few cases in the
suite.

What is compared, and how closely
    Decisions, states and counts by a hash, exactly; seconds and bounds to 1e-9 of their value;
    predictions to 1e-5 and learned weights to 1e-4 of their absolute sum (float32, whose rounding
    depends on how XLA arranges a computation). Policies choose among nearly equal numbers, so their
    decisions agree exactly only on one machine under one version of JAX: the results name both,
    and `compare` says so when they differ. The cases of the suite use no JAX.

Who reads a clock
    All budgets count samples, under which these never look at one (found by reading every use of
    ``perf_counter``, ``monotonic`` and ``Budget.seconds``): annealing, DPs, METIS, policies, HDP,
    fine-tuning, the walkers of ``local-search`` (their pace only divides what seconds are left,
    which is without end), ``auto`` without seconds (which then leaves ``exact`` out). What does:

    - ``exact``: CP-SAT with two workers stops by its own clock, always. Legality and value count.
    - ``local-search`` on max-load: its cut bound works for five seconds. Decisions and value come
      before that and are compared exactly; the bound, and whether it proves the optimum, by range.
      The same holds for what ``auto`` makes of it.
    - ``confirm_memory``, after ``auto`` on a ring with memory: two seconds a chip. First fit
      settles the cases here in milliseconds, so they are compared exactly; only a machine some
      hundred times as slow would give another plan.
    - `go_rl.tuning`, `go_rl.plans.run` and the timing of kernels measure seconds: nothing of them
      is golden.

    What depends on a clock is named by its `Case.clocked`: numbers of such facts must lie within a
    factor of `compare.RANGE`, anything else of theirs is free, and the checker must still say yes.
"""
