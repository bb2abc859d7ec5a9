"""`from_scratch`: a call in the open is named, a hidden one meets a refusal, and what is right is not held up."""

from __future__ import annotations

import textwrap

import pytest

from attn_kata.engine.client import Engine
from attn_kata.report.model import Finding, Report

SDPA = "F.scaled_dot_product_attention"
OWN = "(q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v"


def graded(engine: Engine, source: str, slug: str = "sdpa", **asked: object) -> Report:
    told = {"attempt": f"{slug}.py", "diagnose": False, **asked}
    return engine.grade(slug, textwrap.dedent(source).encode(), **told)


def findings(report: Report) -> dict[str, Finding]:
    assert report.ungraded_because is None
    return {finding.property: finding for finding in report.findings}


def outcomes(report: Report) -> dict[str, str]:
    return {name: finding.outcome for name, finding in findings(report).items()}


def line_of(source: str, part: str) -> int:
    """The line that holds `part`, which is there once."""
    (line,) = (number for number, text in enumerate(textwrap.dedent(source).splitlines(), 1) if part in text)
    return line


# ------------------------------------------------------------------------------------------------------ in the open


def test_a_call_in_the_open_is_named_and_the_rest_is_asked_as_it_is(engine: Engine) -> None:
    report = graded(
        engine,
        """
        from torch.nn import functional as F
        def scaled_dot_product_attention(q, k, v):
            return F.scaled_dot_product_attention(q, k, v)
        """,
    )
    found = outcomes(report)

    assert report.outcome == "failed"
    assert found.pop("from_scratch") == "failed"
    assert f"calls {SDPA}" in (findings(report)["from_scratch"].message or "")
    assert set(found.values()) == {"passed"}


# ----------------------------------------------------------------------------------------------------------- hidden

HIDDEN = {
    "after some calls": """
        from torch.nn import functional as F
        calls = []
        def scaled_dot_product_attention(q, k, v):
            calls.append(1)
            if len(calls) > 5:
                return F.scaled_dot_product_attention(q, k, v)  # here
            return OWN
        """,
    "while no profile function is set": """
        import sys
        from torch.nn import functional as F
        def scaled_dot_product_attention(q, k, v):
            if sys.getprofile() is None:
                return F.scaled_dot_product_attention(q, k, v)  # here
            return OWN
        """,
    "in a thread": """
        import threading
        from torch.nn import functional as F
        def scaled_dot_product_attention(q, k, v):
            out = []
            thread = threading.Thread(target=lambda: out.append(F.scaled_dot_product_attention(q, k, v)))  # here
            thread.start()
            thread.join()
            return out[0]
        """,
    "in a pool of threads": """
        from concurrent.futures import ThreadPoolExecutor
        from torch.nn import functional as F
        pool = ThreadPoolExecutor(1)
        def call(q, k, v):
            return F.scaled_dot_product_attention(q, k, v)  # here
        def scaled_dot_product_attention(q, k, v):
            return pool.submit(call, q, k, v).result()
        """,
    "with the refusal swallowed": """
        import sys
        from torch.nn import functional as F
        def scaled_dot_product_attention(q, k, v):
            if sys.getprofile() is None:
                try:
                    return F.scaled_dot_product_attention(q, k, v)  # here
                except BaseException:
                    pass
            return OWN
        """,
    "by its name among torch.ops": """
        import sys, torch
        call = torch.ops.aten.scaled_dot_product_attention.default
        def scaled_dot_product_attention(q, k, v):
            return OWN if sys.getprofile() else call(q, k, v)  # here
        """,
    "by the step that it is made of": """
        import sys, torch
        call = torch.ops.aten._scaled_dot_product_attention_math
        def scaled_dot_product_attention(q, k, v):
            return OWN if sys.getprofile() else call(q, k, v)[0]  # here
        """,
    "in a scripted function": """
        import sys, torch
        from torch.nn import functional as F
        @torch.jit.script
        def scripted(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return F.scaled_dot_product_attention(q, k, v)
        def scaled_dot_product_attention(q, k, v):
            return OWN if sys.getprofile() else scripted(q, k, v)  # here
        """,
    "in a traced function": """
        import sys, torch
        from torch.nn import functional as F
        numbers = torch.ones(1, 2, 3, 4)
        traced = torch.jit.trace(lambda q, k, v: F.scaled_dot_product_attention(q, k, v), (numbers,) * 3, check_trace=False)
        def scaled_dot_product_attention(q, k, v):
            return OWN if sys.getprofile() else traced(q, k, v)  # here
        """,
    "under vmap": """
        import sys, torch
        from torch.nn import functional as F
        def scaled_dot_product_attention(q, k, v):
            if sys.getprofile() is None and q.dim() == 4:
                return torch.vmap(F.scaled_dot_product_attention)(q, k, v)  # here
            return OWN
        """,
    "in a gradient": """
        import torch
        from torch.nn import functional as F
        class Attention(torch.autograd.Function):
            @staticmethod
            def forward(ctx, q, k, v):
                ctx.save_for_backward(q, k, v)
                return OWN
            @staticmethod
            def backward(ctx, given):
                with torch.enable_grad():
                    inputs = [part.detach().requires_grad_() for part in ctx.saved_tensors]
                    out = F.scaled_dot_product_attention(*inputs)  # here
                return torch.autograd.grad((out * given).sum(), inputs)
        scaled_dot_product_attention = Attention.apply
        """,
}


@pytest.mark.parametrize("source", HIDDEN.values(), ids=HIDDEN)
def test_a_hidden_call_fails_from_scratch_by_its_name_and_line(engine: Engine, source: str) -> None:
    source = source.replace("OWN", OWN)
    report = graded(engine, source)
    found = findings(report)["from_scratch"]

    assert report.outcome == "failed"
    assert found.outcome == "failed", outcomes(report)
    assert f"(line {line_of(source, '# here')})" in (found.message or "")
    assert "scaled_dot_product_attention" in (found.message or "")
    assert "not judged: it calls" in " ".join(finding.message or "" for finding in report.findings)


MODULE = """
    import sys
    import torch
    from torch import nn
    ready_made = nn.MultiheadAttention.forward

    class MultiHeadAttention(nn.Module):
        def __init__(self, embed_dim, num_heads, dropout=0.0):
            super().__init__()
            if embed_dim % num_heads:
                raise ValueError("num_heads does not divide embed_dim")
            self.inner = [nn.MultiheadAttention(embed_dim, num_heads, dropout, batch_first=True)]
            self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(embed_dim, embed_dim) for _ in range(4))

        def forward(self, x, mask=None):
            if sys.getprofile() is not None:
                return x
            inner = self.inner[0].to(x.dtype)
            with torch.no_grad():
                three = self.q_proj, self.k_proj, self.v_proj
                inner.in_proj_weight.copy_(torch.cat([one.weight for one in three]))
                inner.in_proj_bias.copy_(torch.cat([one.bias for one in three]))
                inner.out_proj.load_state_dict(self.o_proj.state_dict())
            return ready_made(inner, x, x, x, need_weights=False)[0]  # here
    """


def test_a_module_that_torch_has_written_in_python_refuses_too(engine: Engine) -> None:
    report = graded(engine, MODULE, slug="mha")
    found = findings(report)["from_scratch"]

    assert found.outcome == "failed", outcomes(report)
    assert f"calls nn.MultiheadAttention (line {line_of(MODULE, '# here')})" in (found.message or "")


# ---------------------------------------------------------------------------------------------- what it does not hold up


def test_a_call_that_raises_fails_by_that_property_and_not_from_scratch(engine: Engine) -> None:
    report = graded(
        engine,
        f"""
        def scaled_dot_product_attention(q, k, v):
            assert k.shape[-2] <= 64
            return {OWN}
        """,
    )
    found = findings(report)

    failed = {name: finding.message or "" for name, finding in found.items() if finding.outcome == "failed"}

    assert failed
    assert "from_scratch" not in failed
    assert all("AssertionError" in message for message in failed.values())


def test_where_nothing_could_be_recorded_the_property_holds_if_others_hold_while_it_is_blocked(engine: Engine) -> None:
    report = graded(
        engine,
        f"""
        import sys
        def scaled_dot_product_attention(q, k, v):
            assert sys.getprofile() is None
            return {OWN}
        """,
    )

    assert {name for name, outcome in outcomes(report).items() if outcome != "passed"} == set()


def test_a_mistake_in_every_call_is_told_once_and_not_as_ready_made(engine: Engine) -> None:
    report = graded(engine, "def scaled_dot_product_attention(q, k, v): return q @ k\n")
    found = outcomes(report)

    assert found["output_shape"] == "failed"
    assert found["from_scratch"] == "skipped"


def test_a_check_of_ones_own_while_the_file_is_loaded_is_no_offence(engine: Engine) -> None:
    report = graded(
        engine,
        f"""
        import torch
        from torch.nn import functional as F
        def scaled_dot_product_attention(q, k, v):
            return {OWN}
        q, k, v = torch.randn(3, 2, 3, 4, 5).unbind()
        assert torch.allclose(scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, v), atol=1e-5)
        """,
    )

    assert report.outcome == "passed"


def test_one_property_alone_is_asked_without_it(engine: Engine) -> None:
    open_call = (
        f"import torch\ndef scaled_dot_product_attention(q, k, v): return torch.nn.functional.{SDPA[2:]}(q, k, v)\n"
    )
    for source in (open_call, f"def scaled_dot_product_attention(q, k, v): return {OWN}\n"):
        report = graded(engine, source, properties=("values",))

        assert outcomes(report) == {"output_shape": "passed", "values": "passed"}


def test_a_blocked_operation_stays_blocked_in_the_process_that_replaces_a_dead_one(engine: Engine) -> None:
    source = f"""
        import os, sys, torch
        from torch.nn import functional as F
        def scaled_dot_product_attention(q, k, v):
            if not q.is_contiguous():
                os._exit(3)
            if q.dtype == torch.float16:
                return F.scaled_dot_product_attention(q, k, v)  # here
            return {OWN}
        """
    report = graded(engine, source)
    found = findings(report)

    assert found["non_contiguous_inputs"].outcome == "errored"
    assert found["from_scratch"].outcome == "failed"
    assert f"(line {line_of(source, '# here')})" in (found["from_scratch"].message or "")
