//===- CommIROps.td - The logical program ------------------*- tablegen -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_COMMIR_OPS
#define DIALECT_COMMIR_OPS

include "dialect/CommIR/CommIRTypes.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class CommIR_Op<string opMnemonic, list<Trait> traits = []>
    : Op<CommIR_Dialect, opMnemonic, traits>;

def CommIR_LevelArrayAttr : TypedArrayAttrBase<CommIR_LevelAttr, "levels">;
def CommIR_AxisArrayAttr : TypedArrayAttrBase<CommIR_AxisAttr, "axes">;
def CommIR_BindingArrayAttr
    : TypedArrayAttrBase<CommIR_BindingAttr, "bindings">;
def CommIR_LoopArrayAttr : TypedArrayAttrBase<CommIR_LoopAttr, "loops">;
def CommIR_MergeAttr : AnyAttrOf<[CommIR_MergeKindAttr, FlatSymbolRefAttr],
    "a merge kind or the symbol of a commir.merge">;

//===----------------------------------------------------------------------===//
// Mesh and program
//===----------------------------------------------------------------------===//

def CommIR_MeshOp : CommIR_Op<"mesh", [Symbol]> {
  let summary = "the devices as a grid of named levels";
  let description = [{
    Levels are given outermost (slowest link) first; ranks are row-major.

    ```mlir
    commir.mesh @cluster(node = 2, gpu = 4)
    ```

    **Constraints**
    - [mesh.empty] a mesh `must have at least one level`
    - [mesh.level-twice] a mesh `must not name a level twice`
    - [mesh.ranks] a mesh `must have at most 2^20 ranks`
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       CommIR_LevelArrayAttr:$levels);
  let assemblyFormat = "$sym_name `` custom<Levels>($levels) attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The size of a level, or 0 when the mesh has none of that name.
    int64_t getLevelSize(StringRef name);
    /// The number of ranks that differ on the levels of a group only.
    int64_t getGroupSize(ArrayAttr group);
    /// The position of a level, outermost 0, or -1.
    int64_t getLevelNumber(StringRef name);
    /// The names of the levels, for messages: 'node', 'gpu'.
    std::string describeLevels();
  }];
}

def CommIR_ProgramOp : CommIR_Op<"program",
    [Symbol, IsolatedFromAbove, NoTerminator, SingleBlock,
     DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>,
     DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a tensor operator over a mesh, as loops over named axes";
  let description = [{
    A program is logical: whole shapes, no devices. What a buffer's binding says
    after `at` is its boundary placement, part of the signature. Its meaning is
    that of its loops run in order on one device, however they are scheduled.

    ```mlir
    commir.program @matmul on @cluster axes(i = 8, j = 6, k = 4)
        inputs(%A: !commir.buffer<[i, k], f32> at [i -> gpu],
               %B: !commir.buffer<[k, j], f32>)
        outputs(%C: !commir.buffer<[i, j], f32>) {
      commir.for i, j, k {
        %a = commir.load %A : !commir.buffer<[i, k], f32>
        %b = commir.load %B : !commir.buffer<[k, j], f32>
        %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>,
            !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
        commir.store %c to %C merge(sum) over(k)
            : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
      }
    }
    ```

    **Constraints**
    - [program.mesh] a program `must run on a commir.mesh`
    - [program.axis-twice] a program `must not name an axis twice`
    - [program.binding] each argument `must be a buffer with one binding`
    - [program.inputs] `num_inputs` `must be from 0 to` the number of buffers
    - [program.attribute] an attribute that the syntax of an op gives `must not be given twice`
    - [program.buffer-twice] a program `must not name a buffer twice`
    - [program.buffer-axis] a buffer `must use axes of the program`
    - [program.divisor] the divisor of a dimension `must divide its axis`
    - [program.cut-axis] a placement `must cut axes of its buffer`
    - [program.cut-level] a placement `must name levels of the mesh`
    - [program.cut-layout] the layout of a cut `must fit the axis`
    - [program.cut-shards] a placement `must cut into at most 2^20 shards`
    - [program.replicate] a level `must not be both replicated and sharded`
    - [program.replicate-twice] a buffer `must not be replicated twice over a level`
    - [program.broadcast] what is broadcast `must be an input, along an axis that it is sharded on`
    - [program.output] an output `must be stored to`
    - [program.loop-twice] a program `must not name a loop twice`
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$mesh,
                       CommIR_AxisArrayAttr:$axes,
                       CommIR_BindingArrayAttr:$bindings,
                       I64Attr:$num_inputs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The mesh that the program runs on; null before it is verified.
    MeshOp getMeshOp();
    /// The axis of that name, or null.
    AxisAttr getAxis(StringRef name);
    /// The number of the buffer of that name, or -1.
    int64_t getBufferNumber(StringRef name);
    BindingAttr getBinding(int64_t buffer);
    BufferType getBufferType(int64_t buffer);
    bool isInput(int64_t buffer) {
      return buffer < static_cast<int64_t>(getNumInputs());
    }
  }];
}

def CommIR_ForOp : CommIR_Op<"for", [NoTerminator, SingleBlock,
                                     HasParent<"ProgramOp">]> {
  let summary = "a nest of loops over axes, outermost first";
  let description = [{
    Each iteration works on one part of each axis; a loop that is not cut stays
    whole, so its extent reaches the kernel. A schedule changes this list and
    nothing in the body. `of n` is the number of parts, `parallel(levels)` spreads
    them over the mesh, `shift(...)` staggers them.

    ```mlir
    commir.for b, h, sq of 4 parallel(gpu), sk of 4 shift(by sq on gpu) { ... }
    ```

    **Constraints**
    - [for.loops] a nest `must have at least one loop`
    - [for.axis] a loop `must run over an axis of the program`
    - [for.axis-shared] an axis in a joined loop `must have no other loop`
    - [for.parallel-level] a parallel loop `must name levels of the mesh`
    - [for.parallel-parts] a parallel loop `must have as many parts as its levels have ranks`
    - [for.level-taken] a level `must not run two parallel loops`
    - [for.shift-by] a loop `must be shifted by a parallel loop of the nest`
    - [for.shift-level] a loop `must be shifted on a level of the loop it is shifted by`
    - [for.shift-own-level] a shifted loop `must not be parallel on the level it is shifted on`
    - [for.shift-parts] the parts of a shifted loop `must be a multiple of the ranks it is shifted over`
    - [for.shift-joined] a shifted loop `must run over one axis`
    - [for.shift-via] a shift's via `must name buffers of the program`
    - [for.shift-via-mode] a shift's via `must move an input by rotate or pull, an output by travel, deliver or fetch`
    - [for.broadcast-level] a loop `must not be shifted over a level that its axis is broadcast on`
    - [for.broadcast-parts] the outermost cut of an axis `must be a multiple of the shards that are broadcast along it`
    - [for.joined-parts] a joined loop `must be cut along whole axes`
    - [for.parts] the parts of an axis `must be at most 2^20`
    - [for.layout] the parts of an axis, or the chunks that they move in,
      `must fit its layout`
    - [for.body] the body of a nest `must hold loads, kernels and stores only`
  }];
  let arguments = (ins CommIR_LoopArrayAttr:$loops);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "custom<Loops>($loops) $body attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The loop of that name, or null.
    LoopAttr getLoop(StringRef name);
    /// The product of the parts of the loops over an axis.
    int64_t getParts(StringRef axis);
  }];
}

//===----------------------------------------------------------------------===//
// The body of a nest
//===----------------------------------------------------------------------===//

def CommIR_LoadOp : CommIR_Op<"load", [Pure, HasParent<"ForOp">]> {
  let summary = "the tile of a buffer that this iteration reads";
  let description = [{
    ```mlir
    %k = commir.load %K : !commir.buffer<[b, sk, h/4, 128], bf16>
    ```

    **Constraints**
    - [load.tile] a load `must give the tile of its buffer`
    - [load.looped] each axis of a loaded or stored buffer `must have a loop in the nest`
    - [load.input] a load `must read an input`
  }];
  let arguments = (ins CommIR_BufferType:$buffer);
  let results = (outs CommIR_TileType:$tile);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "Value":$buffer)>];
}

def CommIR_KernelOp : CommIR_Op<"kernel", [Pure, HasParent<"ForOp">]> {
  let summary = "a local computation on tiles, by its meaning";
  let description = [{
    A kernel says what is computed, never how: the schedule picks an
    implementation with `impl`. Its shapes are checked against a signature: the
    one that the name has (`attention_fwd`, `matmul`, ...) or the one given. A
    signature lists dimensions by letters, as in `"m k, k n -> m n"`; `h/g` is
    the same axis divided. A mask belongs to the program and speaks of global
    positions of the dimensions called `sq` and `sk`.

    ```mlir
    %o, %lse = commir.kernel "attention_fwd"(%q, %k, %v) mask(causal)
        {scale = 0.125 : f64} : (!commir.tile<[b, sq, h, 64], f32>,
        !commir.tile<[b, sk, h, 64], f32>, !commir.tile<[b, sk, h, 64], f32>)
        -> (!commir.tile<[b, sq, h, 64], f32>, !commir.tile<[b, h, sq], f32>)
    ```

    **Constraints**
    - [kernel.known] a kernel `must be known or give a signature`
    - [kernel.signature] a signature `must list operands and results`
    - [kernel.operands] a kernel `must have the operands of its signature`
    - [kernel.results] a kernel `must have the results of its signature`
    - [kernel.rank] an operand or result `must have as many dimensions as its signature`
    - [kernel.shape] a dimension `must agree across the kernel`
    - [kernel.axis-twice] two dimensions of a kernel `must not run over one axis`
    - [kernel.mask] a mask `must be given to a kernel over sq and sk`
    - [kernel.mask-axis] a mask `must speak of whole axes`
    - [kernel.documents] document bounds `must end at the extent of both axes`
  }];
  let arguments = (ins StrAttr:$kernel, Variadic<CommIR_TileType>:$inputs,
                       OptionalAttr<CommIR_MaskAttr>:$mask,
                       OptionalAttr<StrAttr>:$impl,
                       OptionalAttr<StrAttr>:$signature);
  let results = (outs Variadic<CommIR_TileType>:$outputs);
  let assemblyFormat = [{
    $kernel `(` $inputs `)` (`mask` `(` custom<Mask>($mask)^ `)`)?
    (`impl` `(` $impl^ `)`)? (`signature` `(` $signature^ `)`)? attr-dict
    `:` functional-type($inputs, $outputs)
  }];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def CommIR_StoreOp : CommIR_Op<"store", [HasParent<"ForOp">,
                                         AttrSizedOperandSegments]> {
  let summary = "where the results of an iteration go, and how they merge";
  let description = [{
    Reduction is a property of each result: a result is reduced over every loop
    axis that its buffer does not have, and `over` says which those are. Where
    the buffer has `h/4` and the kernel takes all of `h`, the result is reduced
    over the 4 heads of each group, and `over` names `h` too. A softmax pair is
    stored by one op. `once` gives partial results that enter the merge one time,
    not once an iteration, as the sink of attention does. `deferred` keeps each
    partial result of a rank where no other is, and merges them all at the end;
    they wait in float32, or in the type that `partial` names.

    ```mlir
    commir.store %o, %lse to %O, %LSE merge(softmax) over(sk)
        : !commir.tile<[b, sq, h, 64], f32>, !commir.tile<[b, h, sq], f32>
        to !commir.buffer<[b, sq, h, 64], bf16>, !commir.buffer<[b, h, sq], f32>
    commir.store %dk to %dK merge(sum) over(sq, h)
        : !commir.tile<[b, sk, h/4, 64], f32> to !commir.buffer<[b, sk, h/4, 64], bf16>
    commir.store %c to %C merge(sum) over(k) deferred partial(bf16)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], bf16>
    ```

    **Constraints**
    - [store.count] a store `must have one buffer for each tile`
    - [store.tile] a stored tile `must have the dimensions of its buffer`
    - [store.output] a store `must write an output`
    - [store.over] `over` `must name the loop axes that the buffer lacks`
    - [store.loaded] a reduced axis `must be a dimension of a loaded buffer`
    - [store.over-twice] `over` `must not name an axis twice`
    - [store.merge] a reduced result `must name its merge`
    - [store.merge-unused] a result that is not reduced `must not name a merge`
    - [store.softmax] a softmax merge `must store a pair`
    - [store.merge-symbol] a merge symbol `must name a commir.merge`
    - [store.once] a buffer `must be stored to once`
    - [store.once-count] what enters once `must be one tile for each buffer`
    - [store.once-tile] a tile that enters once `must have the dimensions of its buffer`
    - [store.once-merge] what enters once `must have a merge to enter`
    - [store.once-axes] what enters once `must not depend on a reduced axis`
    - [store.deferred] a merge to defer `must be that of a reduced result`
    - [store.partial] `partial` `must be the float type of deferred partial results`
  }];
  let arguments = (ins Variadic<CommIR_TileType>:$tiles,
                       Variadic<CommIR_BufferType>:$buffers,
                       Variadic<CommIR_TileType>:$once,
                       OptionalAttr<CommIR_MergeAttr>:$merge,
                       OptionalAttr<StrArrayAttr>:$over, UnitAttr:$deferred,
                       OptionalAttr<TypeAttr>:$partial);
  let assemblyFormat = [{
    $tiles `to` $buffers (`merge` `(` custom<Merge>($merge)^ `)`)?
    (`over` `(` custom<Names>($over)^ `)`)?
    (`deferred` $deferred^)? (`partial` `(` $partial^ `)`)?
    (`once` `(` $once^ `:` type($once) `)`)? attr-dict
    `:` type($tiles) `to` type($buffers)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The buffer that a tile of this store goes to.
    Value getBufferOf(OpOperand &tile);
  }];
}

//===----------------------------------------------------------------------===//
// Merges given by the user
//===----------------------------------------------------------------------===//

def CommIR_MergeOp : CommIR_Op<"merge", [Symbol, IsolatedFromAbove,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "a merge of partial results given as a region";
  let description = [{
    The region takes two partial results, element by element, and yields one. It
    must be associative and commutative with the stated identity.

    ```mlir
    commir.merge @smallest identity(0x7F800000 : f32) (%a: f32, %b: f32) {
      %c = arith.minimumf %a, %b : f32
      commir.yield %c : f32
    }
    ```

    **Constraints**
    - [merge.arguments] a merge `must take two values of the identity's type`
    - [merge.yield] a merge `must yield one value of the identity's type`
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypedAttrInterface:$identity);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
}

def CommIR_YieldOp : CommIR_Op<"yield", [Pure, Terminator,
                                         HasParent<"MergeOp">]> {
  let summary = "the value of a merge region";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let builders = [OpBuilder<(ins), [{ (void)$_state; }]>];
}

#endif // DIALECT_COMMIR_OPS
