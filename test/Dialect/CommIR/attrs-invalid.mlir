// RUN: mercury-opt %s -split-input-file -verify-diagnostics

// CONSTRAINT: level.size
// expected-error@below {{the size of level 'gpu' must be at least 1, got 0}}
commir.mesh @mesh(gpu = 0)

// -----

// CONSTRAINT: layout.chunk
// expected-error@below {{the chunk of a striped layout must be at least 1, got 0}}
module attributes {test.layout = #commir.layout<striped(0)>} {}

// -----

// CONSTRAINT: layout.chunk-most
// expected-error@below {{the chunk of a striped layout must be at most 2^40, got 4611686018427387904}}
module attributes {test.layout = #commir.layout<striped(4611686018427387904)>} {}

// -----

// CONSTRAINT: layout.bounds
// expected-error@below {{explicit bounds must rise from 0, got [1, 8]}}
module attributes {test.layout = #commir.layout<bounds[1, 8]>} {}

// -----

// CONSTRAINT: layout.bounds
// expected-error@below {{explicit bounds must rise from 0, got [0, 5, 3]}}
module attributes {test.layout = #commir.layout<bounds[0, 5, 3]>} {}

// -----

// CONSTRAINT: layout.bounds
// expected-error@below {{explicit bounds must rise from 0, got []}}
module attributes {test.layout = #commir.layout<bounds[]>} {}

// -----

// expected-error@below {{expected 'block', 'zigzag', 'striped(c)' or 'bounds[...]'}}
module attributes {test.layout = #commir.layout<diagonal>} {}

// -----

// CONSTRAINT: axis.extent
// expected-error@below {{the extent of axis 'i' must not be negative, got -1}}
module attributes {test.axis = #commir.axis<i = -1>} {}

// -----

// CONSTRAINT: axis.extent-most
// expected-error@below {{the extent of axis 'i' must be at most 2^40, got 1099511627777}}
module attributes {test.axis = #commir.axis<i = 1099511627777>} {}

// -----

// CONSTRAINT: axis.bounds
// expected-error@below {{the bounds of axis 'i' must end at its extent 8, got 7}}
module attributes {test.axis = #commir.axis<i = 8 bounds[0, 7]>} {}

// -----

// expected-error@below {{expected a name that is not empty}}
module attributes {test.axis = #commir.axis<"" = 8>} {}

// -----

// CONSTRAINT: dim.divisor
// expected-error@below {{the divisor of dimension 'h' must be at least 1, got 0}}
module attributes {test.dim = #commir.dim<h/0>} {}

// -----

// CONSTRAINT: dim.constant
// expected-error@below {{a constant dimension must not be negative, got -128}}
module attributes {test.dim = #commir.dim<-128>} {}

// -----

// CONSTRAINT: dim.constant-most
// expected-error@below {{a constant dimension must be at most 2^40, got 9223372036854775807}}
module attributes {test.dim = #commir.dim<9223372036854775807>} {}

// -----

// CONSTRAINT: cut.factors
// expected-error@below {{the cut of axis 'i' must name at least one level or number}}
module attributes {test.cut = #commir.cut<i -> ()>} {}

// -----

// CONSTRAINT: cut.level-twice
// expected-error@below {{the cut of axis 'i' must not name a level twice, got 'gpu' again}}
module attributes {test.cut = #commir.cut<i -> (gpu, 2, gpu)>} {}

// -----

// CONSTRAINT: cut.number
// expected-error@below {{a number in the cut of axis 'i' must be at least 1, got 0}}
module attributes {test.cut = #commir.cut<i -> (0, gpu)>} {}

// -----

// CONSTRAINT: placement.axis-twice
// expected-error@below {{a placement must not cut an axis twice, got 'i' again}}
module attributes {test.placement = #commir.placement<[i -> gpu, i -> node]>} {}

// -----

// CONSTRAINT: placement.level-twice
// expected-error@below {{a placement must not use a level for two cuts, got 'gpu' for 'j' as well}}
module attributes {test.placement = #commir.placement<[i -> gpu, j -> gpu]>} {}

// -----

// CONSTRAINT: shift.terms
// expected-error@below {{a shift must name at least one loop and level, as in 'by sq on gpu'}}
module attributes {test.shift = #commir.shift<direction 1>} {}

// -----

// CONSTRAINT: shift.level-twice
// expected-error@below {{a shift must not use a level twice, got 'gpu' again}}
module attributes {test.shift = #commir.shift<by i on gpu, by j on gpu>} {}

// -----

// CONSTRAINT: shift.direction
// expected-error@below {{the direction of a shift must be 1 or -1, got 2}}
module attributes {test.shift = #commir.shift<by i on gpu, direction 2>} {}

// -----

// CONSTRAINT: shift.offset
// expected-error@below {{the offset of a shift must be from -2^20 to 2^20, got 9223372036854775807}}
module attributes {test.shift = #commir.shift<by i on gpu, offset 9223372036854775807>} {}

// -----

// CONSTRAINT: shift.chunks
// expected-error@below {{the chunks of a shift must be at least 1, got 0}}
module attributes {test.shift = #commir.shift<by i on gpu, chunks 0>} {}

// -----

// CONSTRAINT: shift.chunks-most
// expected-error@below {{the chunks of a shift must be at most 2^20, got 1048577}}
module attributes {test.shift = #commir.shift<by i on gpu, chunks 1048577>} {}

// -----

// CONSTRAINT: shift.link
// expected-error@below {{the link type of a shift must be a floating-point type, got 'i8'}}
module attributes {test.shift = #commir.shift<by i on gpu, link i8>} {}

// -----

// CONSTRAINT: shift.via
// expected-error@below {{buffer 'K' in via must move by rotate, pull, travel, deliver or fetch, got "post"}}
module attributes {test.shift = #commir.shift<by i on gpu, via {K = "post"}>} {}

// -----

// CONSTRAINT: shift.via
// expected-error@below {{buffer 'K' in via must move by rotate, pull, travel, deliver or fetch, got 5 : i64}}
module attributes {test.shift = #commir.shift<by i on gpu, via {K = 5}>} {}

// -----

// expected-error@below {{expected 'by', 'direction', 'offset', 'reads rotate|pull', 'results travel|deliver|fetch', 'via', 'chunks' or 'link', got 'reads travel'}}
module attributes {test.shift = #commir.shift<by i on gpu, reads travel>} {}

// -----

// CONSTRAINT: loop.axes
// expected-error@below {{loop 'i' must run over at least one axis}}
module attributes {test.loop = #commir.loop<i in ()>} {}

// -----

// CONSTRAINT: loop.axis-twice
// expected-error@below {{loop 'i' must not run over an axis twice, got 'j' again}}
module attributes {test.loop = #commir.loop<i in (j, k, j)>} {}

// -----

// CONSTRAINT: loop.parts
// expected-error@below {{the parts of loop 'i' must be at least 1, got 0}}
module attributes {test.loop = #commir.loop<i of 0>} {}

// -----

// CONSTRAINT: mask.window
// expected-error@below {{a window must not be empty: left 2 and right -3 leave no key}}
module attributes {test.mask = #commir.mask<window(2, -3)>} {}

// -----

// The sum of the sides would leave 64 bits.
// CONSTRAINT: mask.sides
// expected-error@below {{the sides of a mask must be from -2^40 to 2^40, got 9223372036854775807}}
module attributes {test.mask = #commir.mask<window(9223372036854775807, 1)>} {}

// -----

// CONSTRAINT: mask.documents
// expected-error@below {{document bounds must rise from 0, got [0, 9, 4]}}
module attributes {test.mask = #commir.mask<causal documents[0, 9, 4]>} {}

// -----

// expected-error@below {{expected 'full', 'causal' or 'window', got 'diagonal'}}
module attributes {test.mask = #commir.mask<diagonal>} {}

// -----

// CONSTRAINT: buffer.axis-twice
// expected-error@below {{a buffer or tile must not use an axis for two dimensions, got 'i' again}}
module attributes {test.buffer = !commir.buffer<[i, i/2], f32>} {}

// -----

// CONSTRAINT: buffer.element
// expected-error@below {{the element type of a buffer or tile must be a floating-point type, got 'i32'}}
module attributes {test.tile = !commir.tile<[i], i32>} {}
