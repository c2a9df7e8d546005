#!/usr/bin/env python3
"""alerts_series.py RULES ALERT fires|quiet SCRAPE... - a test for `promtool test rules`, on standard output.

The series are those of the scrapes, a minute apart; the last one stays for half an hour. The alert fires, or does not, at its end:
at the last scrape where there are several, since a rate ends with the last change.
"""
import re
import sys

rules, alert, verdict, scrapes = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
STAYS = 30
series = {}
for place, name in enumerate(scrapes):
    with open(name, encoding="utf-8") as lines:
        for line in lines:
            match = re.match(r"([a-z_]+)(?:\{(.*)\})? (\S+)$", line)
            if match:
                labels = ",".join(filter(None, [match[2], 'instance="node"', 'job="troupe"']))
                series.setdefault(f"{match[1]}{{{labels}}}", ["_"] * len(scrapes))[place] = match[3]
at = STAYS if len(scrapes) == 1 else len(scrapes) - 1
print(f"rule_files: ['{rules}']\nevaluation_interval: 15s\ntests:\n  - interval: 1m\n    input_series:")
for name, values in series.items():
    quoted = name.replace("'", "''")
    print(f"      - series: '{quoted}'\n        values: '{' '.join(values)} {values[-1]}+0x{STAYS}'")
print(f"    promql_expr_test:\n      - expr: 'count(ALERTS{{alertname=\"{alert}\",alertstate=\"firing\"}})'\n        eval_time: {at}m")
print("        exp_samples: [{labels: '{}', value: 1}]" if verdict == "fires" else "        exp_samples: []")
