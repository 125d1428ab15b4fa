#include "ops/random/generator.h"

namespace taeda {

Generator make_generator() { return {std::make_shared<GeneratorImpl>()}; }

Generator& default_generator() {
  static Generator g = make_generator();
  return g;
}

}  // namespace taeda
