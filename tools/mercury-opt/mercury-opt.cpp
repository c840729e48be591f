//===- mercury-opt.cpp - Pass driver
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

extern "C" int mercuryOptMain(int argc, char **argv);

int main(int argc, char **argv) { return mercuryOptMain(argc, argv); }
