"""A stand-in for an agent: it solves `2 + 3 * 4` one operation at a time, without any model API.

`choose` plays the model (which operation comes next), `calculate` plays the tool (what it gives). With the binding
`precedence: false` the model forgets that products come first, so that a variant has something to lose.
"""

from __future__ import annotations


def parse(expression):
    """`2 + 3 * 4` to [2, "+", 3, "*", 4]."""
    return [int(word) if word.lstrip("-").isdigit() else word for word in expression.split()]


def choose(request):
    """The model: the place of the operator to apply next, or the final answer."""
    terms = request["terms"]
    if len(terms) == 1:
        return {"answer": str(terms[0]), "usage": {"tokens_in": 1, "tokens_out": 1}}
    places = [place for place, term in enumerate(terms) if isinstance(term, str)]
    products = [place for place in places if terms[place] == "*"]
    chosen = products[0] if products and request["precedence"] else places[0]
    return {"apply": chosen, "usage": {"tokens_in": len(terms), "tokens_out": 1}}


def calculate(request):
    """The tool: one operation."""
    left, operator, right = request["left"], request["operator"], request["right"]
    if operator == "+":
        return {"value": left + right}
    if operator == "-":
        return {"value": left - right}
    if operator == "*":
        return {"value": left * right}
    raise ValueError("unknown operator " + repr(operator))


def reduced(terms, place, value):
    """The terms after the operation at `place` gave `value`."""
    return [*terms[: place - 1], value, *terms[place + 2 :]]


def operation(terms, place):
    """What the tool is asked."""
    return {"left": terms[place - 1], "operator": terms[place], "right": terms[place + 1]}
