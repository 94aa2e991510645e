"""Methods side by side: the portfolio, the benchmark, the control arms."""
