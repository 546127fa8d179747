"""The program under test: reads trial_input.json, writes trial_output.json. Put your agent here."""

import json
import os

with open(os.environ["LABAUDIT_TRIAL_INPUT"]) as stream:
    trial = json.load(stream)

answer = f"{trial['bindings']['greeting']} {trial['task']['name']}"

output = {
    "schema_version": "trial_output_v1",
    "ids": trial["ids"],
    "outcome": "success",
    "answer": answer,
}
with open(os.path.join(trial["runtime"]["paths"]["out"], "trial_output.json"), "w") as stream:
    json.dump(output, stream)
