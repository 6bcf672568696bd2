"""Which kernel line each line of an artifact comes from, in the forms that Triton's stages write."""

from __future__ import annotations

import pytest

from inductoscope.server.assembly import disassembly, line_tables

FILE = "triton_red_0.py"

PTX = """\
.visible .entry triton_red_0(
\t.param .u64 triton_red_0_param_0
)
{
\t.reg .b32 \t%r<9>;
\t.loc\t1 17 0                          // triton_red_0.py:17:0
$L__func_begin0:
\tld.param.b64 \t%rd1, [triton_red_0_param_0];
\t.loc\t1 23 28                         // triton_red_0.py:23:28
\tmov.u32 \t%r1, %ctaid.x;
\t// begin inline asm
\tmov.u64 %rd2, 0x0;
\t.loc\t2 169 15                        // helpers.py:169:15 @[ helpers.py:182:29 @[ triton_red_0.py:39:37 ] ]
\tsetp.lt.f32 \t%p1, %f1, %f2;
\t.loc\t2 263 15, function_name $L__info_string0, inlined_at 1 41 9
\tadd.f32 \t%f3, %f1, %f2;
\t.loc\t2 300 1                         // helpers.py:300:1
\tsub.f32 \t%f4, %f1, %f2;
\t.loc\t1 50 4                          // triton_red_0.py:50:4
$L__BB0_2:
\t@%p1 bra \t$L__BB0_2;
\tret;
}
\t.file\t1 "triton_red_0.py"
\t.file\t2 "/site-packages/helpers.py"
\t.section\t.debug_abbrev
"""


def test_ptx() -> None:
    assert line_tables.of("ptx", PTX, FILE) == {8: 17, 10: 23, 12: 23, 14: 39, 16: 41, 21: 50, 22: 50}


AMDGCN = """\
triton_red_0:                           ; @triton_red_0
.Lfunc_begin0:
\t.file\t1 "." "triton_red_0.py"
\t.loc\t1 17 0                          ; triton_red_0.py:17:0
\ts_load_dwordx4 s[4:7], s[0:1], 0x0
\t.loc\t1 23 28 prologue_end            ; triton_red_0.py:23:28
\tv_lshlrev_b32_e32 v0, 2, v0
.Ltmp0:
\t.loc\t2 263 15                        ; standard.py:263:15 @[ triton_red_0.py:30:9 ]
\tv_add_f32_e32 v1, v1, v2
; %bb.1:
\ts_endpgm
.Lfunc_end0:
\t.size\ttriton_red_0, .Lfunc_end0-triton_red_0
\ts_nop 0
"""


def test_amdgcn() -> None:
    assert line_tables.of("amdgcn", AMDGCN, FILE) == {5: 17, 7: 23, 10: 30, 12: 30}


TTIR = """\
#loc = loc("triton_red_0.py":17:0)
#loc40 = loc("in_ptr0"(#loc))
module {
  tt.func public @triton_red_0(%in_ptr0: !tt.ptr<f32> loc("in_ptr0"(#loc))) {
    %c = arith.constant 1 : i32 loc(#loc1)
    %x = tt.get_program_id x : i32 loc(#loc41)
    %y = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32 loc(callsite(#loc2 at #loc3)), %b: f32 loc(callsite(#loc2 at #loc3))):
      %s = arith.addf %a, %b : f32 loc(#loc42)
    }) : (tensor<64xf32>) -> f32 loc(#loc43)
    tt.store %y : f32 loc(#loc44)
    tt.return loc(#loc45)
  } loc(#loc)
} loc(#loc)
#loc1 = loc(unknown)
#loc2 = loc("/site-packages/standard.py":263:15)
#loc3 = loc("triton_red_0.py":30:9)
#loc4 = loc("triton_red_0.py":23:28)
#loc41 = loc("xoffset"(#loc4))
#loc42 = loc(callsite(#loc2 at #loc3))
#loc43 = loc("tmp5"(#loc42))
#loc44 = loc(fused[#loc2, #loc4])
#loc45 = loc(#loc45)
"""


@pytest.mark.parametrize("stage", ["ttir", "ttgir"])
def test_mlir(stage: str) -> None:
    found = line_tables.of(stage, TTIR, FILE)
    assert {line: found[line] for line in (6, 9, 10, 11)} == {6: 23, 9: 30, 10: 30, 11: 23}
    assert not {5, 12, 15} & set(found)


LLIR = """\
define ptx_kernel void @triton_red_0(ptr addrspace(1) %0) !dbg !5 {
  %2 = tail call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x(), !dbg !8
  %3 = fadd float %1, %2, !dbg !9
  %4 = fsub float %1, %2, !dbg !13
  ret void
}
!1 = !DIFile(filename: "triton_red_0.py", directory: "")
!2 = !DIFile(filename: "standard.py", directory: "/site-packages")
!5 = distinct !DISubprogram(name: "triton_red_0", scope: !1, file: !1, line: 17, unit: !0)
!7 = !DILexicalBlockFile(scope: !5, file: !2, discriminator: 0)
!8 = !DILocation(line: 23, column: 28, scope: !5)
!9 = !DILocation(line: 263, column: 15, scope: !7, inlinedAt: !10)
!10 = !DILocation(line: 30, column: 9, scope: !11)
!11 = !DILexicalBlockFile(scope: !12, file: !1, discriminator: 0)
!12 = distinct !DILexicalBlock(scope: !5, file: !1)
!13 = !DILocation(line: 263, column: 15, scope: !7)
!14 = !DILocation(line: 0, scope: !14, inlinedAt: !14)
"""


def test_llvm() -> None:
    assert line_tables.of("llir", LLIR, FILE) == {2: 23, 3: 30}


NVDISASM = """\
\t.section\t.text.triton_red_0,"ax",@progbits
.text.triton_red_0:
\t//## File ".nv_debug_ptx_txt", line 8
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 LDG.E R24, desc[UR6][R30.64] ;
\t//## File "/somewhere/triton_red_0.py", line 23
\t//## File ".nv_debug_ptx_txt", line 14
        /*0020*/                   FSETP.GEU.AND P0, PT, R2, R3, PT ;
.L_x_0:
\t//## File ".nv_debug_ptx_txt", line 18
        /*0030*/                   BRA `(.L_x_0);
"""


def test_sass_goes_through_the_ptx() -> None:
    ptx = line_tables.of("ptx", PTX, FILE)
    text = disassembly.annotated(NVDISASM, ptx)
    assert "//## PTX line 14, kernel line 39" in text
    assert "//## PTX line 18\n" in text
    assert "File" not in text
    sass = line_tables.of("sass", text, FILE)
    lines = text.split("\n")
    by_code = {lines[number - 1].split("*/")[1].split()[0]: at for number, at in sass.items()}
    assert by_code == {"LDC": 17, "@!P0": 17, "FSETP.GEU.AND": 39}
    to_ptx = {lines[number - 1].split("*/")[1].split()[0]: at for number, at in line_tables.sass_to_ptx(text).items()}
    assert to_ptx == {"LDC": 8, "@!P0": 8, "FSETP.GEU.AND": 14, "BRA": 18}


@pytest.mark.parametrize("stage", ["ttir", "ttgir", "llir", "ptx", "sass", "amdgcn", "cubin", "?"])
@pytest.mark.parametrize(
    "text", ["", "\n\n", "#loc1 = loc(#loc2)\n#loc2 = loc(#loc1)\n x loc(#loc1)", ".loc", "\0" * 99]
)
def test_any_text_has_a_table(stage: str, text: str) -> None:
    assert line_tables.of(stage, text, FILE) == {}


def test_a_disassembler_that_fails_says_so() -> None:
    with pytest.raises(disassembly.DisassemblyError, match="cannot be run"):
        disassembly.disassemble(b"", "/no/such/program")
    with pytest.raises(disassembly.DisassemblyError, match="ended with status 1"):
        disassembly.disassemble(b"", "/bin/false")
