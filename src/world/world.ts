import type http from 'node:http'
import type https from 'node:https'
import type net from 'node:net'
import type tls from 'node:tls'
import type { Worker } from 'node:worker_threads'

/** Timers of the event loop. The names are those of the platform, so that a reader knows them. */
export type Timers = {
  setTimeout(call: () => void, ms: number): Timer
  clearTimeout(timer: Timer | undefined): void
  /** Calls once after that many milliseconds. @returns cancels it */
  after(ms: number, call: () => void): () => void
  setInterval(call: () => void, ms: number): Timer
  clearInterval(timer: Timer | undefined): void
  /** Calls after the current turn of the event loop. */
  setImmediate(call: () => void): Turn
  clearImmediate(turn: Turn): void
  /** Resolves after that many milliseconds. */
  sleep(ms: number): Promise<void>
  /** Resolves after the current turn of the event loop. */
  nextTurn(): Promise<void>
  /** A signal that aborts after that many milliseconds. */
  timeoutSignal(ms: number): AbortSignal
}

/** A timer that keeps the process alive until it is cleared or `unref` is called. */
export type Timer = { unref(): Timer }
/** A call that `setImmediate` has scheduled. */
export type Turn = object

/** Where a socket connects to; with TLS if `tls` has its options. */
export type ConnectOptions = {
  host: string
  port: number
  lookup?: net.LookupFunction
  tls?: Pick<tls.ConnectionOptions, 'ca' | 'rejectUnauthorized' | 'servername' | 'session'>
}

export type HttpRequestOptions = Pick<
  https.RequestOptions,
  'method' | 'headers' | 'agent' | 'rejectUnauthorized'
>

/** An IP address of a host name. */
export type HostAddress = { address: string; family: number }

type PasswordCost = { algorithm: 'argon2id'; memoryCost: number; timeCost: number }

export type SpawnedProcess = Pick<Bun.Subprocess<'ignore', 'pipe', 'pipe'>, 'pid' | 'exited' | 'kill'> & {
  stdout: Pick<ReadableStream, 'text'>
  stderr: Pick<ReadableStream, 'text'>
}

/** A thread of this process that runs a module. */
type Thread = Pick<Worker, 'on' | 'terminate' | 'unref'>

/**
 * Conditions that hold under any calls, faults of the disk and crashes: if one does not, the code is wrong.
 *
 * - `attempts_within_limit`: no code has more attempts than its limit.
 * - `limiter_follows_rows`: a batch of admissions continues the rows from which the limiter's memory was read.
 * - `lists_follow_changes`: the same for the lists; and after entries were moved, those left in memory are in the rows that
 *   are kept, unless they are many.
 * - `rows_named_before_decision`: the rows that a batch decides on were loaded, and locked, before.
 */
export const invariants = [
  'attempts_within_limit',
  'limiter_follows_rows',
  'lists_follow_changes',
  'rows_named_before_decision',
] as const
export type Invariant = (typeof invariants)[number]

/**
 * Everything that a server takes from outside of its own code: time, chance, network, disk flushes, processes and
 * threads. The server gets it as a dependency: the simulator in `test/sim` passes one in which a seed decides.
 *
 * Files are not part of it: `node:fs` and SQLite are synchronous, and do the same on any disk. What a disk keeps when the
 * power fails depends on `flush` alone.
 */
export type World = {
  /** Milliseconds since the epoch by the system clock, which may be set. */
  now(): number
  /** Milliseconds since some moment; never falls. */
  monotonic(): number
  /** Seconds since boot, time in suspend included. */
  uptimeSeconds(): number
  timers: Timers
  /** Fills the array with cryptographically secure random bytes, and returns it. */
  random<T extends Uint8Array<ArrayBuffer>>(bytes: T): T
  /** A number in [0, 1), for jitter; not for secrets. */
  randomNumber(): number
  uuid(): string
  /** Opens a connection. */
  connect(options: ConnectOptions): net.Socket
  /** Sends an HTTP request over the agent of the options. @throws TypeError the URL or a header is invalid */
  request(url: string, options: HttpRequestOptions): http.ClientRequest
  fetch(url: string, init: RequestInit): Promise<Response>
  /** Listens with HTTP. @throws the error of the system when the address is in use or not available */
  listen(options: Bun.Serve.Options<undefined>): Bun.Server<undefined>
  /** Asks the name servers and the hosts file. Rejects if there is no address. */
  resolve(host: string): Promise<HostAddress[]>
  /** Brings the data of an open file to disk. Rejects with the error of the system. */
  flush(file: number): Promise<void>
  /** Does the same at once, and blocks the event loop as long as the disk takes: for starts. @throws the error of the system */
  flushSync(file: number): void
  hashPassword(password: string, cost: PasswordCost): Promise<string>
  verifyPassword(password: string, hash: string): Promise<boolean>
  /** Starts a program with no input and captured output. */
  spawn(command: readonly string[]): SpawnedProcess
  /** Identifies the file that has a path now; null if there is none. @throws the error of the system */
  fileId(path: string): string | null
  /** Bytes that the server may still write to the disk of a folder. @throws the error of the system */
  freeBytes(folder: string): number
  /** Sets the scheduling priority of a process. @throws the error of the system */
  setPriority(pid: number, priority: number): void
  startThread(module: URL, data: unknown): Thread
  /** Called when an invariant does not hold. The system's throws, so that tests and commands end; a server goes on. */
  onBroken(invariant: Invariant, detail: string): void
  /** Calls before the process exits. @returns cancels that */
  onExit(call: () => void): () => void
}
