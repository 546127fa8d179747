"""The numbered rules of Task, Scenario, Run and Score records: values in, findings out, nothing stops at the first one.

    task_rules      T1-T3        run_rules     R1-R10      score_rules   C1-C5
    scenario_rules  S1-S5        trace_rules   V1-V2       date_rules    D1
    book            every rule as a row                    finding       what a rule says
"""
