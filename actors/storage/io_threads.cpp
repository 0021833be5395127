#include "actors/storage/io_threads.hpp"

#if defined(__SANITIZE_THREAD__)
#define BOOST_ASIO_DISABLE_FENCED_BLOCK 1  // the thread sanitizer knows no fences
#endif
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <utility>

namespace weft {

struct IoThreads::Pool {
  explicit Pool(unsigned count) : threads(count) {}
  boost::asio::thread_pool threads;
};

IoThreads::IoThreads(unsigned count) : pool_(std::make_unique<Pool>(count)) {}

IoThreads::~IoThreads() {
  join();
}

void IoThreads::post(std::function<void()> work) {
  boost::asio::post(pool_->threads, std::move(work));
}

void IoThreads::join() {
  pool_->threads.join();
}

}  // namespace weft
