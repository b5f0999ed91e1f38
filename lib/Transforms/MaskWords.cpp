//===- MaskWords.cpp - Masked accesses of 32-bit words ---------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// AVX and AVX2 have masks for elements of 32 and 64 bits. For narrower ones
// LLVM makes a branch for each element. The masks here leave the first n of a
// vector: n / k whole words of k elements, which the CPU has a mask for, and n
// % k elements of the next, which are one branch for i16 and up to three for
// i8. Where n is known, no mask is needed: pieces of 2^i elements make up any
// n. Some CPUs store under a mask as slowly as ten times without.
//
//===----------------------------------------------------------------------===//

#include "MaskWords.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"

#include <numeric>
#include <variant>

using namespace mlir;

namespace {
/// How many lanes a mask leaves, the first ones: a number, or a value of an
/// integer type.
using LaneCount = std::variant<int64_t, Value>;
} // namespace

static bool isZero(Value vector) {
  if (auto cast = vector.getDefiningOp<LLVM::BitcastOp>())
    vector = cast.getArg();
  return matchPattern(vector, m_Zero()) ||
         matchPattern(vector, m_PosZeroFloat());
}

/// What all lanes of `vector` have; null if that is not known.
static Value splatSource(Value vector) {
  auto shuffle = vector.getDefiningOp<LLVM::ShuffleVectorOp>();
  if (!shuffle || llvm::any_of(shuffle.getMask(), [](int32_t i) { return i; }))
    return {};
  auto insert = shuffle.getV1().getDefiningOp<LLVM::InsertElementOp>();
  return insert && matchPattern(insert.getPosition(), m_Zero())
             ? insert.getValue()
             : Value();
}

/// Whether `vector` is 0, 1, 2, ...
static bool isIota(Value vector) {
  DenseIntElementsAttr elements;
  if (!matchPattern(vector, m_Constant(&elements)))
    return false;
  return llvm::all_of(llvm::enumerate(elements.getValues<APInt>()),
                      [](auto lane) { return lane.value() == lane.index(); });
}

static std::optional<LaneCount> countLanes(Value mask) {
  DenseIntElementsAttr lanes;
  if (matchPattern(mask, m_Constant(&lanes))) {
    SmallVector<bool> values(lanes.getValues<bool>());
    int64_t count = llvm::count(values, true);
    bool isFirst = llvm::all_of(ArrayRef(values).take_front(count),
                                [](bool isActive) { return isActive; });
    return isFirst ? std::optional<LaneCount>(count) : std::nullopt;
  }
  auto compare = mask.getDefiningOp<LLVM::ICmpOp>();
  if (!compare)
    return std::nullopt;
  Value bound = compare.getLhs(), places = compare.getRhs();
  if (compare.getPredicate() == LLVM::ICmpPredicate::slt)
    std::swap(bound, places);
  else if (compare.getPredicate() != LLVM::ICmpPredicate::sgt)
    return std::nullopt;
  Value count = splatSource(bound);
  if (!count || !isIota(places))
    return std::nullopt;
  return LaneCount(count);
}

/// Whether `type` is one of words, a power of two, of narrower elements.
static bool isNarrow(VectorType type) {
  if (type.getRank() != 1 || !type.getElementType().isInteger())
    return false;
  unsigned bits = type.getElementTypeBitWidth();
  int64_t total = type.getNumElements() * bits;
  return (bits == 8 || bits == 16) && total >= 64 && llvm::isPowerOf2_64(total);
}

namespace {
/// One access of elements narrower than a word, of which only run time knows
/// how many count.
class WordAccess {
public:
  WordAccess(Operation *op, VectorType type, Value count)
      : b(op->getLoc(), op), type(type), count(count) {}

  void load(LLVM::MaskedLoadOp op);
  void store(LLVM::MaskedStoreOp op);

private:
  int64_t perWord() { return 32 / type.getElementTypeBitWidth(); }
  VectorType wordsType() {
    return VectorType::get({type.getNumElements() / perWord()}, b.getI32Type());
  }
  /// The elements of one word, and all but the last of them.
  VectorType wordType() {
    return VectorType::get({perWord()}, type.getElementType());
  }
  VectorType restType() {
    return VectorType::get({perWord() - 1}, type.getElementType());
  }

  Value number(int32_t value) {
    return LLVM::ConstantOp::create(b, b.getI32Type(),
                                    b.getI32IntegerAttr(value));
  }
  Value iota(int64_t length);
  Value splat(Value value, VectorType type);
  /// A mask of `length` lanes that leaves the first `active`.
  Value firstLanes(Value active, int64_t length);
  void split();
  Value restAddress(Value base);
  Value asWord(Value elements);
  ImplicitLocOpBuilder b;
  VectorType type;
  Value count;
  /// How many words count, and how many elements of the next.
  Value words, rest;
};
} // namespace

Value WordAccess::iota(int64_t length) {
  auto places = llvm::to_vector(llvm::seq<int32_t>(0, length));
  auto attr = DenseElementsAttr::get(VectorType::get({length}, b.getI32Type()),
                                     ArrayRef<int32_t>(places));
  return LLVM::ConstantOp::create(b, attr.getType(), attr);
}

Value WordAccess::splat(Value value, VectorType type) {
  Value poison = LLVM::PoisonOp::create(b, type);
  Value first = LLVM::InsertElementOp::create(b, poison, value, number(0));
  SmallVector<int32_t> zeros(type.getNumElements(), 0);
  return LLVM::ShuffleVectorOp::create(b, first, poison, zeros);
}

Value WordAccess::firstLanes(Value active, int64_t length) {
  auto type = VectorType::get({length}, b.getI32Type());
  return LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::sgt, splat(active, type),
                              iota(length));
}

/// Sets `words` and `rest`.
void WordAccess::split() {
  Value active = count;
  if (active.getType() != b.getI32Type())
    active = LLVM::TruncOp::create(b, b.getI32Type(), active);
  words = LLVM::LShrOp::create(b, active, number(llvm::Log2_64(perWord())));
  rest = LLVM::AndOp::create(b, active, number(perWord() - 1));
}

Value WordAccess::restAddress(Value base) {
  return LLVM::GEPOp::create(b, base.getType(), b.getI32Type(), base,
                             ArrayRef<LLVM::GEPArg>{words});
}

/// The first elements of a word, with a last one of 0.
Value WordAccess::asWord(Value elements) {
  if (perWord() == 2)
    return LLVM::ZExtOp::create(
        b, b.getI32Type(),
        LLVM::ExtractElementOp::create(b, elements, number(0)));
  Value zeros = LLVM::ZeroOp::create(b, restType());
  Value word = LLVM::ShuffleVectorOp::create(
      b, elements, zeros, llvm::to_vector(llvm::seq<int32_t>(0, perWord())));
  return LLVM::BitcastOp::create(b, b.getI32Type(), word);
}

void WordAccess::load(LLVM::MaskedLoadOp op) {
  split();
  int64_t length = wordsType().getNumElements();
  Value none = LLVM::ZeroOp::create(b, wordsType());
  Value loaded = LLVM::MaskedLoadOp::create(b, wordsType(), op.getData(),
                                            firstLanes(words, length), none,
                                            op.getAlignment());
  Value zeros = LLVM::ZeroOp::create(b, restType());
  Value elements = LLVM::MaskedLoadOp::create(
      b, restType(), restAddress(op.getData()),
      firstLanes(rest, restType().getNumElements()), zeros, op.getAlignment());
  Value word = asWord(elements);
  Value isPlace = LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::eq,
                                       splat(words, wordsType()), iota(length));
  loaded = LLVM::SelectOp::create(b, isPlace, splat(word, wordsType()), loaded);
  op.getRes().replaceAllUsesWith(LLVM::BitcastOp::create(b, type, loaded));
  op.erase();
}

void WordAccess::store(LLVM::MaskedStoreOp op) {
  split();
  int64_t length = wordsType().getNumElements();
  Value value = LLVM::BitcastOp::create(b, wordsType(), op.getValue());
  LLVM::MaskedStoreOp::create(b, value, op.getData(), firstLanes(words, length),
                              op.getAlignment());
  // All words may count; then there is no rest.
  Value place = LLVM::AndOp::create(b, words, number(length - 1));
  Value word = LLVM::ExtractElementOp::create(b, value, place);
  Value elements = LLVM::BitcastOp::create(b, wordType(), word);
  elements = LLVM::ShuffleVectorOp::create(
      b, elements, elements,
      llvm::to_vector(llvm::seq<int32_t>(0, perWord() - 1)));
  LLVM::MaskedStoreOp::create(b, elements, restAddress(op.getData()),
                              firstLanes(rest, restType().getNumElements()),
                              op.getAlignment());
  op.erase();
}

/// Calls `access` with the place and the length of each piece that makes up the
/// first `count` elements.
static void forEachPiece(int64_t count,
                         function_ref<void(int64_t, int64_t)> access) {
  for (int64_t place = 0; place < count;) {
    int64_t length = llvm::bit_floor<uint64_t>(count - place);
    access(place, length);
    place += length;
  }
}

static Value addressOf(ImplicitLocOpBuilder &b, Value base, Type element,
                       int64_t place) {
  return LLVM::GEPOp::create(b, base.getType(), element, base,
                             ArrayRef<LLVM::GEPArg>{int32_t(place)});
}

static void loadPieces(LLVM::MaskedLoadOp op, VectorType type, int64_t count) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  int64_t lanes = type.getNumElements();
  Value loaded = LLVM::ZeroOp::create(b, type);
  forEachPiece(count, [&](int64_t place, int64_t length) {
    auto pieceType = VectorType::get({length}, type.getElementType());
    Value piece = LLVM::LoadOp::create(
        b, pieceType, addressOf(b, op.getData(), type.getElementType(), place),
        op.getAlignment());
    SmallVector<int32_t> wide(lanes, -1), merged;
    std::iota(wide.begin(), wide.begin() + length, 0);
    piece = LLVM::ShuffleVectorOp::create(b, piece, piece, wide);
    for (int64_t lane = 0; lane < lanes; ++lane)
      merged.push_back(
          lane < place || lane >= place + length ? lane : lanes + lane - place);
    loaded = LLVM::ShuffleVectorOp::create(b, loaded, piece, merged);
  });
  op.getRes().replaceAllUsesWith(loaded);
  op.erase();
}

static void storePieces(LLVM::MaskedStoreOp op, VectorType type,
                        int64_t count) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  forEachPiece(count, [&](int64_t place, int64_t length) {
    Value piece = LLVM::ShuffleVectorOp::create(
        b, op.getValue(), op.getValue(),
        llvm::to_vector(llvm::seq<int32_t>(place, place + length)));
    LLVM::StoreOp::create(
        b, piece, addressOf(b, op.getData(), type.getElementType(), place),
        op.getAlignment());
  });
  op.erase();
}

void norm::moveMaskedWords(Operation *root) {
  SmallVector<Operation *> accesses;
  root->walk([&](Operation *op) {
    if (isa<LLVM::MaskedLoadOp, LLVM::MaskedStoreOp>(op))
      accesses.push_back(op);
  });
  for (Operation *op : accesses) {
    auto load = dyn_cast<LLVM::MaskedLoadOp>(op);
    auto store = dyn_cast<LLVM::MaskedStoreOp>(op);
    // Other values than zeros for what is not loaded would have to be taken
    // apart like the rest.
    if (load && (!load.getPassThru() || !isZero(load.getPassThru())))
      continue;
    auto type = cast<VectorType>(load ? load.getRes().getType()
                                      : store.getValue().getType());
    std::optional<LaneCount> count =
        countLanes(load ? load.getMask() : store.getMask());
    if (!count || !isNarrow(type))
      continue;
    if (auto *known = std::get_if<int64_t>(&*count)) {
      if (load)
        loadPieces(load, type, *known);
      else
        storePieces(store, type, *known);
    } else {
      WordAccess access(op, type, std::get<Value>(*count));
      if (load)
        access.load(load);
      else
        access.store(store);
    }
  }
}
