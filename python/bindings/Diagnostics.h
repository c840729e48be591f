//===- Diagnostics.h - What the compiler says, for Python --------*- C++
//-*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PYTHON_BINDINGS_DIAGNOSTICS_H
#define PYTHON_BINDINGS_DIAGNOSTICS_H

#include "mlir-c/Diagnostics.h"
#include <string>
#include <utility>
#include <vector>

namespace mercury {
/// One diagnostic with its notes: (location, text) pairs.
using Message = std::vector<std::pair<std::string, std::string>>;

inline Message toMessage(MlirDiagnostic diagnostic) {
  auto append = [](MlirStringRef piece, void *data) {
    static_cast<std::string *>(data)->append(piece.data, piece.length);
  };
  std::string text, location;
  mlirDiagnosticPrint(diagnostic, append, &text);
  mlirLocationPrint(mlirDiagnosticGetLocation(diagnostic), append, &location);
  Message message{{location, text}};
  for (intptr_t i = 0, e = mlirDiagnosticGetNumNotes(diagnostic); i < e; ++i)
    for (auto &note : toMessage(mlirDiagnosticGetNote(diagnostic, i)))
      message.push_back(note);
  return message;
}

/// Collects the errors and remarks that a context reports while it lives.
class ErrorCollector {
public:
  explicit ErrorCollector(MlirContext context) : context(context) {
    handler =
        mlirContextAttachDiagnosticHandler(context, handle, this, nullptr);
  }
  ~ErrorCollector() { mlirContextDetachDiagnosticHandler(context, handler); }
  ErrorCollector(const ErrorCollector &) = delete;

  std::vector<Message> take() { return std::move(messages); }
  std::vector<Message> takeRemarks() { return std::move(remarks); }

private:
  static MlirLogicalResult handle(MlirDiagnostic diagnostic, void *self) {
    auto *collector = static_cast<ErrorCollector *>(self);
    if (mlirDiagnosticGetSeverity(diagnostic) == MlirDiagnosticError)
      collector->messages.push_back(toMessage(diagnostic));
    if (mlirDiagnosticGetSeverity(diagnostic) == MlirDiagnosticRemark)
      collector->remarks.push_back(toMessage(diagnostic));
    return mlirLogicalResultSuccess();
  }

  MlirContext context;
  MlirDiagnosticHandlerID handler;
  std::vector<Message> messages, remarks;
};
} // namespace mercury

#endif // PYTHON_BINDINGS_DIAGNOSTICS_H
