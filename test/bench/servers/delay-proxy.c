// TCP proxy on 127.0.0.1 that delays each direction, and counts what PostgreSQL's clients send. Timers of JavaScript have
// a resolution of a millisecond, which is too coarse for half of one.
//
// delay-proxy TARGET-PORT FILE: prints its port. FILE holds numbers of 64 bits, which other processes may read and set:
// the delay of each direction in nanoseconds, round trips, statements, and transactions.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { connectionsMax = 512, chunkMax = 65536 };

typedef struct Chunk {
  struct Chunk *next;
  uint64_t dueAt;
  size_t length, sent;
  char bytes[];
} Chunk;

// The way from one socket to the other. An end of the stream is a chunk without bytes.
typedef struct {
  int from, to;
  int isAtEnd;
  Chunk *first, *last;
} Direction;

typedef struct {
  Direction ways[2];
  // Of the message that the client is sending: its head so far, and the bytes that its body still lacks.
  unsigned char head[5];
  int headLength, isStarted, queryAt;
  uint32_t bodyLeft;
  char type;
  int hasServerSpoken;
} Connection;

static Connection *connections[connectionsMax];
static volatile uint64_t *numbers;
enum { delayNs, roundTrips, statements, transactions, numbersCount };

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void prepare(int socket) {
  int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(socket, F_SETFL, O_NONBLOCK);
}

static struct sockaddr_in loopback(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Counts Bind messages, which execute a prepared statement, and simple queries. The first message, which starts the
// session, has no type.
static void count(Connection *c, const unsigned char *bytes, size_t length) {
  static const char begin[] = "begin";
  if (c->hasServerSpoken) numbers[roundTrips]++;
  c->hasServerSpoken = 0;
  for (size_t i = 0; i < length;) {
    if (c->bodyLeft > 0) {
      if (c->type == 'Q' && c->queryAt >= 0 && c->queryAt < 5) {
        c->queryAt = bytes[i] == (unsigned char)begin[c->queryAt] ? c->queryAt + 1 : -1;
        if (c->queryAt == 5) numbers[transactions]++;
        c->bodyLeft--;
        i++;
        continue;
      }
      size_t part = length - i < c->bodyLeft ? length - i : c->bodyLeft;
      c->bodyLeft -= (uint32_t)part;
      i += part;
      continue;
    }
    if (c->headLength == 0 && !c->isStarted) c->head[c->headLength++] = 0;
    c->head[c->headLength++] = bytes[i++];
    if (c->headLength < 5) continue;
    c->type = (char)c->head[0];
    c->bodyLeft = ((uint32_t)c->head[1] << 24 | (uint32_t)c->head[2] << 16 | (uint32_t)c->head[3] << 8 | c->head[4]) - 4;
    c->headLength = c->queryAt = 0;
    c->isStarted = 1;
    if (c->type == 'B' || c->type == 'Q') numbers[statements]++;
  }
}

static void add(Direction *way, const char *bytes, size_t length) {
  Chunk *chunk = malloc(sizeof *chunk + length);
  if (!chunk) exit(1);
  *chunk = (Chunk){.dueAt = now() + numbers[delayNs], .length = length};
  if (length > 0) memcpy(chunk->bytes, bytes, length);
  if (way->last) way->last->next = chunk;
  else way->first = chunk;
  way->last = chunk;
}

static void receive(Connection *c, Direction *way) {
  static char bytes[chunkMax];
  ssize_t length = read(way->from, bytes, sizeof bytes);
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (length > 0) {
    if (way == &c->ways[0]) count(c, (unsigned char *)bytes, (size_t)length);
    else c->hasServerSpoken = 1;
    add(way, bytes, (size_t)length);
    return;
  }
  way->isAtEnd = 1;
  add(way, NULL, 0);
}

// Sends what is due. Returns whether the socket takes no more for now.
static int sendDue(Direction *way) {
  while (way->first && way->first->dueAt <= now()) {
    Chunk *chunk = way->first;
    if (chunk->length == 0) shutdown(way->to, SHUT_WR);
    while (chunk->sent < chunk->length) {
      ssize_t sent = send(way->to, chunk->bytes + chunk->sent, chunk->length - chunk->sent, MSG_NOSIGNAL);
      if (sent < 0 && errno == EAGAIN) return 1;
      // The other end is gone.
      if (sent < 0) sent = (ssize_t)(chunk->length - chunk->sent);
      chunk->sent += (size_t)sent;
    }
    way->first = chunk->next;
    if (!way->first) way->last = NULL;
    free(chunk);
  }
  return 0;
}

static void accept_(int listener, int targetPort) {
  int client = accept(listener, NULL, NULL);
  if (client < 0) return;
  int server = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in target = loopback(targetPort);
  int slot = 0;
  while (slot < connectionsMax && connections[slot]) slot++;
  if (slot == connectionsMax || connect(server, (struct sockaddr *)&target, sizeof target) != 0) {
    close(client);
    close(server);
    return;
  }
  prepare(client);
  prepare(server);
  Connection *c = calloc(1, sizeof *c);
  if (!c) exit(1);
  c->ways[0] = (Direction){.from = client, .to = server};
  c->ways[1] = (Direction){.from = server, .to = client};
  connections[slot] = c;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  // By default timers are up to 50 microseconds late.
  prctl(PR_SET_TIMERSLACK, 1);
  int file = open(argv[2], O_RDWR | O_CREAT, 0600);
  size_t size = numbersCount * sizeof(uint64_t);
  if (file < 0 || ftruncate(file, (off_t)size) != 0) return 1;
  numbers = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = loopback(0);
  socklen_t addressSize = sizeof address;
  if (bind(listener, (struct sockaddr *)&address, addressSize) != 0 || listen(listener, 128) != 0) return 1;
  getsockname(listener, (struct sockaddr *)&address, &addressSize);
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);

  for (;;) {
    static struct pollfd polled[2 * connectionsMax + 1];
    static struct { Connection *connection; int way; } owners[2 * connectionsMax + 1];
    polled[0] = (struct pollfd){.fd = listener, .events = POLLIN};
    nfds_t polledCount = 1;
    uint64_t nextAt = UINT64_MAX;
    for (int slot = 0; slot < connectionsMax; slot++) {
      Connection *c = connections[slot];
      if (!c) continue;
      int isFull[2];
      for (int i = 0; i < 2; i++) {
        isFull[i] = sendDue(&c->ways[i]);
        if (!isFull[i] && c->ways[i].first && c->ways[i].first->dueAt < nextAt) nextAt = c->ways[i].first->dueAt;
      }
      if (c->ways[0].isAtEnd && c->ways[1].isAtEnd && !c->ways[0].first && !c->ways[1].first) {
        close(c->ways[0].from);
        close(c->ways[0].to);
        free(c);
        connections[slot] = NULL;
        continue;
      }
      for (int i = 0; i < 2; i++) {
        short events = (short)((c->ways[i].isAtEnd ? 0 : POLLIN) | (isFull[1 - i] ? POLLOUT : 0));
        // Without events, poll would still report an end again and again.
        polled[polledCount] = (struct pollfd){.fd = events ? c->ways[i].from : -1, .events = events};
        owners[polledCount].connection = c;
        owners[polledCount].way = i;
        polledCount++;
      }
    }
    uint64_t time = now();
    uint64_t wait = nextAt > time ? nextAt - time : 0;
    struct timespec timeout = {(time_t)(wait / 1000000000), (long)(wait % 1000000000)};
    if (ppoll(polled, polledCount, nextAt == UINT64_MAX ? NULL : &timeout, NULL) < 0) continue;
    for (nfds_t i = 1; i < polledCount; i++) {
      Connection *c = owners[i].connection;
      if (polled[i].revents & ~POLLOUT) receive(c, &c->ways[owners[i].way]);
    }
    if (polled[0].revents) accept_(listener, atoi(argv[1]));
  }
}
