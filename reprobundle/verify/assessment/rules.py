"""The recommendation: a table of rules in one order; the first that fires decides.

Each rule answers yes, no, or that evidence is missing. Choosing a Mac is the last rule:
it fires only where every rule before it was answered no. So a check that was not made
never reads as a reason to move.

Sources: requirements A73, A74, B20 to B24, B39 to B41, B62 to B64 (docs/acceptance.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from reprobundle.format.assessment import Choice, Recommendation, RuleAnswer
from reprobundle.verify.assessment import questions
from reprobundle.verify.assessment.answers import Answer, unknown
from reprobundle.verify.assessment.case import Case
from reprobundle.verify.assessment.mac_conditions import all_conditions

NONE_FIRED = "evidence-missing"
_WORDS: dict[bool | None, Literal["yes", "no", "unknown"]] = {
    True: "yes",
    False: "no",
    None: "unknown",
}


class Rule(NamedTuple):
    """One rule of the recommendation.

    Attributes:
        name: Stable name.
        choice: What it recommends.
        says: When it fires, one sentence (spec.md, docs/acceptance.md).
        source: The requirements it comes from.
        ask: Answers it for a case.
    """

    name: str
    choice: Choice
    says: str
    source: str
    ask: Callable[[Case], Answer]


RULES: tuple[Rule, ...] = (
    Rule(
        "needs-cuda",
        "keep-linux",
        "The scan finds a place that needs CUDA, several GPUs or own GPU code in any "
        "case.",
        "A73, B39, B63",
        questions.needs_cuda,
    ),
    Rule(
        "stopped-for-cuda",
        "keep-linux",
        "A replay on a Mac stopped for want of CUDA, and no scan says that the place "
        "can be changed.",
        "A42, B21, B63",
        questions.stopped_for_cuda,
    ),
    Rule(
        "operator-missing",
        "stop",
        "A replay on a Mac stopped at an operator or dtype that MPS does not have.",
        "A39, A74, B20",
        questions.operator_missing,
    ),
    Rule(
        "memory-exceeded",
        "stop",
        "A replay on a Mac stopped for want of memory, or needed more than is "
        "recommended for MPS.",
        "A41, B23",
        questions.memory_exceeded,
    ),
    Rule(
        "central-fallback",
        "stop",
        "On MPS an operator of every step ran on the CPU.",
        "A74, A50, B24",
        questions.central_fallback,
    ),
    Rule(
        "not-reproduced",
        "stop",
        "A result on MPS lies outside the author's policy.",
        "A40, B22, B24",
        questions.not_reproduced,
    ),
    Rule(
        "not-stable",
        "stop",
        "On the Mac the result does not repeat, or not after a stop and a resume.",
        "A40, A74",
        questions.not_stable,
    ),
    Rule(
        "replaceable",
        "refactor",
        "The scan or the forecast names places that stop it on MPS and can be changed.",
        "B40",
        questions.can_be_changed,
    ),
    Rule(
        "both-platforms",
        "dual-track",
        "The author wants the result to count on Linux and on macOS.",
        "A73, A75, B41, B64",
        questions.both_platforms,
    ),
    Rule(
        "guarded-path",
        "dual-track",
        "The scan finds a path of its own for CUDA beside one without.",
        "B41",
        questions.guarded_path,
    ),
    Rule(
        "fallback-aside",
        "dual-track",
        "On MPS operators that are not in every step ran on the CPU.",
        "A50, B26, C55",
        questions.fallback_aside,
    ),
    Rule(
        "all-conditions",
        "choose-mac",
        "Every rule above is answered no, the verdict on MPS is REPRODUCED without a "
        "warning, the author means the result for macos-mps, the scan finds nothing "
        "that blocks, MPS is usable on the examined machine, all five objects are met, "
        "and no point of the path is open.",
        "A73, B62",
        all_conditions,
    ),
)


def recommend(case: Case) -> Recommendation:
    """Return the recommendation by the first rule that fires."""
    answers: list[RuleAnswer] = []
    for rule in RULES:
        answer = rule.ask(case)
        if rule.choice == "choose-mac" and answer.fires:
            answer = _all_answered(answer, answers)
        answers.append(
            RuleAnswer(
                rule=rule.name,
                choice=rule.choice,
                answer=_WORDS[answer.fires],
                text=answer.text,
                evidence=answer.evidence,
                missing=answer.missing,
            )
        )
    missing = tuple(dict.fromkeys(text for one in answers for text in one.missing))
    fired = next((one for one in answers if one.answer == "yes"), None)
    if fired is None:
        text = "no rule fires: what is missing would decide"
        if not missing:
            text = "no rule fires on this evidence"
        return Recommendation(
            choice="undecided",
            rule=NONE_FIRED,
            text=text,
            missing=missing,
            answers=tuple(answers),
        )
    return Recommendation(
        choice=fired.choice,
        rule=fired.rule,
        text=fired.text,
        evidence=fired.evidence,
        missing=missing,
        answers=tuple(answers),
    )


def _all_answered(answer: Answer, earlier: Sequence[RuleAnswer]) -> Answer:
    """Return the last rule's answer, which a question without answer holds back."""
    unanswered = [one for one in earlier if one.answer == "unknown"]
    if not unanswered:
        return answer
    names = ", ".join(one.rule for one in unanswered)
    return unknown(f"these rules are not answered: {names}")
