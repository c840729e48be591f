//===- FakeDevice.cpp - The thread of a fake device, and captures ---------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeDevice.h"
#include <algorithm>

using namespace fake;
using namespace mercury::rt::cuda;

DeviceThread &DeviceThread::get(int device) {
  static std::mutex mutex;
  static std::map<int, DeviceThread *> devices; // as long as the process
  std::lock_guard lock(mutex);
  DeviceThread *&found = devices[device];
  if (!found)
    found = new DeviceThread(device);
  return *found;
}

DeviceThread::DeviceThread(int device) : random(device) {
  legacy = makeStream();
  std::thread([this] { loop(); }).detach();
}

Stream DeviceThread::makeStream() {
  std::lock_guard lock(mutex);
  streams.push_back(new OpaqueStream{this, {}, nullptr, {}});
  return streams.back();
}

void DeviceThread::drop(Stream stream) {
  std::lock_guard lock(mutex);
  streams.erase(std::find(streams.begin(), streams.end(), stream));
  delete stream;
}

void DeviceThread::push(Stream stream, Work work) {
  std::lock_guard lock(mutex);
  stream->work.push_back(std::move(work));
  changed.notify_all();
}

bool DeviceThread::isIdle(Stream stream) {
  std::lock_guard lock(mutex);
  return stream->work.empty();
}

void DeviceThread::drain(Stream stream) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return stream->work.empty(); });
}

void DeviceThread::loop() {
  std::unique_lock lock(mutex);
  while (true) {
    std::vector<Stream> waiting;
    for (Stream stream : streams)
      if (!stream->work.empty())
        waiting.push_back(stream);
    if (waiting.empty()) {
      changed.wait(lock);
      continue;
    }
    bool progress = false;
    std::shuffle(waiting.begin(), waiting.end(), random);
    for (Stream stream : waiting) {
      Work work = stream->work.front();
      int delay = maxDelayUs ? random() % maxDelayUs : 0;
      lock.unlock();
      if (delay)
        std::this_thread::sleep_for(std::chrono::microseconds(delay));
      bool done = work();
      lock.lock();
      // What has begun is kept: the copy above holds its state.
      if (!done) {
        stream->work.front() = std::move(work);
        continue;
      }
      stream->work.pop_front();
      changed.notify_all();
      progress = true;
    }
    if (!progress) {
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      lock.lock();
    }
  }
}

//===----------------------------------------------------------------------===//
// Captures
//===----------------------------------------------------------------------===//

Result fake::enqueue(Stream stream, MakeWork make) {
  if (!stream->graph) {
    stream->device->push(stream, make());
    return kSuccess;
  }
  stream->graph->nodes.push_back({std::move(make), stream->tail});
  stream->tail = {stream->graph->nodes.size() - 1};
  return kSuccess;
}

Result OpaqueStream::joinCapture(const OpaqueEvent &event) {
  if (graph && graph != event.graph)
    return kCaptureIsolation;
  if (!graph) {
    graph = event.graph;
    graph->streams.push_back(this);
    tail.clear();
  }
  for (size_t node : event.nodes)
    if (std::find(tail.begin(), tail.end(), node) == tail.end())
      tail.push_back(node);
  return kSuccess;
}

/// Does each node once those before it are done, in an order left to chance.
static MakeWork replay(std::vector<Node> nodes, std::shared_ptr<int> flight) {
  return [nodes, flight]() -> Work {
    struct State {
      std::vector<Work> work;
      std::vector<bool> done;
      std::mt19937 random{std::random_device{}()};
    };
    auto state = std::make_shared<State>();
    for (const Node &node : nodes)
      state->work.push_back(node.make());
    state->done.resize(nodes.size());
    return [nodes, state, flight] {
      std::vector<size_t> order(nodes.size());
      for (size_t i = 0; i < order.size(); ++i)
        order[i] = i;
      std::shuffle(order.begin(), order.end(), state->random);
      for (size_t node : order) {
        const std::vector<size_t> &after = nodes[node].after;
        if (!state->done[node] &&
            std::all_of(after.begin(), after.end(),
                        [&](size_t before) { return state->done[before]; }))
          state->done[node] = state->work[node]();
      }
      return std::all_of(state->done.begin(), state->done.end(),
                         [](bool done) { return done; });
    };
  };
}

/// Whether the first stream comes after every node of every stream.
static bool isJoined(const OpaqueGraph &graph) {
  std::vector<bool> reached(graph.nodes.size());
  for (size_t node : graph.streams.front()->tail)
    reached[node] = true;
  for (size_t node = graph.nodes.size(); node-- > 0;)
    if (reached[node])
      for (size_t before : graph.nodes[node].after)
        reached[before] = true;
  return std::all_of(reached.begin(), reached.end(), [](bool r) { return r; });
}

static std::atomic<int64_t> lastNodes;

extern "C" {

int64_t fake_cuda_count_nodes(void) { return lastNodes; }

Result cuStreamBeginCapture_v2(Stream stream, int) {
  if (Result result = failPoint(__func__))
    return result;
  stream->graph = new OpaqueGraph;
  stream->graph->streams = {stream};
  stream->tail.clear();
  return kSuccess;
}

Result cuStreamEndCapture(Stream stream, Graph *graph) {
  Graph captured = stream->graph;
  *graph = nullptr;
  if (!captured || captured->streams.front() != stream)
    return 903; // unmatched
  bool joined = isJoined(*captured);
  for (Stream left : captured->streams)
    left->graph = nullptr;
  if (Result result = joined ? failPoint(__func__) : kCaptureUnjoined) {
    delete captured;
    return result;
  }
  *graph = captured;
  return kSuccess;
}

Result cuGraphInstantiateWithFlags(GraphExec *exec, Graph graph,
                                   unsigned long long) {
  if (Result result = failPoint(__func__))
    return result;
  *exec = new OpaqueGraphExec{graph->nodes, std::make_shared<int>()};
  lastNodes = graph->nodes.size();
  return kSuccess;
}

Result cuGraphDestroy(Graph graph) {
  delete graph;
  return kSuccess;
}

/// As the driver was seen to do, it waits for a launch that is not over.
Result cuGraphExecDestroy(GraphExec exec) {
  while (exec->flight.use_count() > 1)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  delete exec;
  return kSuccess;
}

Result cuGraphLaunch(GraphExec exec, Stream stream) {
  if (Result result = failPoint(__func__))
    return result;
  return enqueue(orDefault(stream, current), replay(exec->nodes, exec->flight));
}

} // extern "C"
