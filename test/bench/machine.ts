import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** Whether processes are pinned: servers to core 0, the load to core 1. Needs two cores and taskset. */
export const isPinned = Bun.which('taskset') !== null && navigator.hardwareConcurrency > 1

const onCore = (core: number | null, command: string[]) =>
  isPinned && core !== null ? ['taskset', '-c', String(core), ...command] : command

/** Pins this process, all its threads and its future children to the core of the load. */
export function moveToLoadCore(): void {
  if (isPinned) Bun.spawnSync(['taskset', '-acp', '1', String(process.pid)])
}

/** Folder on a real disk, below the user's home: an fsync in `/tmp` may be free. */
export const cacheFolder = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'otpd')

/** Servers to kill when this process exits. */
const children = new Set<Bun.Subprocess>()
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL')
})

export type Server = {
  port: number
  pid: number
  /** Milliseconds from the start of the process until it is ready. */
  startMs: number
  /** @param signal default SIGKILL */
  stop(signal?: NodeJS.Signals): Promise<void>
}

/**
 * Starts a server that prints its port, or a JSON line with its `url`, once it is ready.
 *
 * @param options.core core to run on, 0 by default; null: any
 */
export async function startServer(
  command: string[],
  options: { env?: Record<string, string>; core?: number | null; cwd?: string } = {},
): Promise<Server> {
  const startedAt = performance.now()
  const child = Bun.spawn(onCore(options.core === undefined ? 0 : options.core, command), {
    env: { PATH: process.env['PATH'] ?? '', NODE_ENV: 'production', ...options.env },
    ...(options.cwd !== undefined && { cwd: options.cwd }),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  children.add(child)
  const stop = async (signal: NodeJS.Signals = 'SIGKILL') => {
    child.kill(signal)
    await child.exited
    children.delete(child)
  }
  const reader = child.stdout.getReader()
  let text = ''
  while (!text.includes('\n')) {
    const { value, done } = await reader.read()
    if (done) throw new Error(`${command.join(' ')} exited before it was ready`)
    text += Buffer.from(value).toString()
  }
  const startMs = performance.now() - startedAt
  // Keeps reading, because a full pipe would block the server.
  void (async () => {
    while (!(await reader.read()).done);
  })()
  const line = text.slice(0, text.indexOf('\n'))
  const port = line.startsWith('{') ? parsePort(line) : Number(line)
  return { port, pid: child.pid, startMs, stop }
}

function parsePort(line: string): number {
  const ready: { url?: string } = JSON.parse(line)
  return Number(new URL(ready.url ?? '').port)
}

/** Returns the user and system time of a process with all its threads, in seconds. Resolution: 10 ms. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The program's name, in parentheses, may contain any character.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

/** Returns the machine's busy CPU seconds since boot: with time stolen by the host, without idle and I/O wait. */
export function machineCpuSeconds(): number {
  const line = readFileSync('/proc/stat', 'utf8').split('\n', 1)[0] ?? ''
  const [user = 0, nice = 0, system = 0, , , interrupts = 0, soft = 0, stolen = 0] = line
    .split(/\s+/)
    .slice(1)
    .map(Number)
  return (user + nice + system + interrupts + soft + stolen) / 100
}

/** Returns the resident memory of a process, in MiB. */
export function memoryMegabytes(pid: number): number {
  const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Number(kilobytes) / 1024
}
