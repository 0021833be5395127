#include "apps/workloads/tiles.hpp"

#include <algorithm>

#include "apps/workloads/measured.hpp"
#include "framework/blas.hpp"

namespace weft::workloads {

BlockCyclic::BlockCyclic(std::vector<Device> devices) : devices_(std::move(devices)) {
  const auto count = static_cast<std::int64_t>(devices_.size());
  for (std::int64_t rows = 1; rows * rows <= count; ++rows)
    if (count % rows == 0) rows_ = rows;
  columns_ = count / rows_;
}

const Device& BlockCyclic::owner(std::int64_t i, std::int64_t j) const {
  return devices_[static_cast<std::size_t>(i % rows_ * columns_ + j % columns_)];
}

Tiles::Tiles(std::int64_t n, std::int64_t tile)
    : n_(n), tile_(std::min(tile, n)), count_((n + tile_ - 1) / tile_) {}

std::int64_t Tiles::extent(std::int64_t i) const {
  return std::min(tile_, n_ - i * tile_);
}

void Tiles::make(const std::function<bool(std::int64_t, std::int64_t)>& wanted,
                 const std::function<Tensor<float>(std::int64_t, std::int64_t)>& fill) {
  tiles_.clear();
  for (std::int64_t i = 0; i < count_; ++i)
    for (std::int64_t j = 0; j < count_; ++j)
      tiles_.push_back(wanted(i, j) ? fill(i, j) : Tensor<float>());
}

Tensor<float>& Tiles::at(std::int64_t i, std::int64_t j) {
  return tiles_[static_cast<std::size_t>(i * count_ + j)];
}

std::vector<float> Tiles::to_host() const {
  std::vector<HostArray<float>> parts;
  for (const auto& tile : tiles_) parts.push_back(tile ? tile.to_host() : HostArray<float>());
  std::vector<float> whole(static_cast<std::size_t>(n_ * n_));
  for (std::int64_t i = 0; i < count_; ++i)
    for (std::int64_t j = 0; j < count_; ++j) {
      const auto at = static_cast<std::size_t>(i * count_ + j);
      if (!tiles_[at]) continue;
      const auto values = parts[at].span();
      const std::int64_t width = extent(j);
      for (std::int64_t row = 0; row < extent(i); ++row)
        std::copy_n(values.begin() + row * width, width,
                    whole.begin() + (i * tile_ + row) * n_ + j * tile_);
    }
  return whole;
}

void Tiles::wait() const {
  for (const auto& tile : tiles_)
    if (tile) tile.future().wait();
}

const Kernel<float, bool, In<float>, In<float>, InOut<float>>& add_product() {
  static const auto kernel =
      Kernel("add_product")
          .cpu([](Cpu& cpu, float factor, bool is_transposed, In<float> a, In<float> b,
                  InOut<float> c) {
            blas::gemm(cpu, false, is_transposed, c.dim(0), c.dim(1), a.dim(1), factor, a.data(),
                       a.dim(1), b.data(), b.dim(1), 1.0f, c.data(), c.dim(1));
          })
          .cost([](float, bool, In<float> a, In<float> b, InOut<float> c) {
            return Cost{2.0 * static_cast<double>(c.size()) * static_cast<double>(a.dim(1)),
                        4.0 * static_cast<double>(a.size() + b.size() + 2 * c.size())};
          });
  return kernel;
}

const Kernel<std::uint64_t, std::int64_t, std::int64_t, std::int64_t, Out<float>>& random_tile() {
  static const auto kernel =
      Kernel("random_tile")
          .cpu([](Cpu&, std::uint64_t seed, std::int64_t n, std::int64_t first_row,
                  std::int64_t first_column, Out<float> tile) {
            for (std::int64_t i = 0; i < tile.dim(0); ++i)
              for (std::int64_t j = 0; j < tile.dim(1); ++j)
                tile[static_cast<std::size_t>(i * tile.dim(1) + j)] = random_element(
                    seed, static_cast<std::uint64_t>((first_row + i) * n + first_column + j));
          })
          .cost([](std::uint64_t, std::int64_t, std::int64_t, std::int64_t, Out<float> tile) {
            return Cost{0, 4.0 * static_cast<double>(tile.size())};
          });
  return kernel;
}

}  // namespace weft::workloads
