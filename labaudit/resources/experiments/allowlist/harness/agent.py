"""Asks the stand-in server through the proxy, then tries a host that is not on the list and says what came of it."""

import json
import os
import urllib.error
import urllib.request

with open(os.environ["LABAUDIT_TRIAL_INPUT"]) as stream:
    given = json.load(stream)
url = "http://" + given["bindings"]["server"] + "/answer"
# The server may be called localhost, but it is outside this sandbox: it too is reached through the proxy alone.
for name in ("no_proxy", "NO_PROXY"):
    os.environ.pop(name, None)


def ask(address, text):
    request = urllib.request.Request(address, json.dumps({"text": text}).encode())
    with urllib.request.urlopen(request, timeout=20) as response:
        return json.load(response)["text"]


text = given["task"]["text"]
answer = ask(url, text) if given["bindings"]["turns"] == 1 else ask(url, ask(url, text))
try:
    ask("http://not-on-the-list.example/answer", text)
    elsewhere = "reached"
except (OSError, ValueError) as error:
    elsewhere = f"refused: {error}"
output = {
    "schema_version": "trial_output_v1",
    "ids": given["ids"],
    "outcome": "success",
    "answer": answer,
    "ext": {"elsewhere": elsewhere},
}
with open(os.path.join(given["runtime"]["paths"]["out"], "trial_output.json"), "w") as stream:
    json.dump(output, stream)
print(elsewhere)
