import { readdir } from 'node:fs/promises'
import { Counter, Gauge, type Registry } from 'prom-client'

/**
 * Registers the standard process metrics under Prometheus' conventional names. prom-client's own set needs APIs that only
 * Node has.
 */
export function addProcessMetrics(registry: Registry): void {
  const registers = [registry]
  const gauge = (name: string, help: string, read: () => number | Promise<number>) =>
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        this.set(await read())
      },
    })

  gauge('process_resident_memory_bytes', 'Resident memory size in bytes.', () => process.memoryUsage.rss())
  const startedAt = Date.now() / 1000 - process.uptime()
  gauge(
    'process_start_time_seconds',
    'Start time of the process in seconds since the epoch.',
    () => startedAt,
  )
  // NaN on systems without /proc.
  gauge('process_open_fds', 'Number of open file descriptors.', () =>
    readdir('/proc/self/fd').then(
      (names) => names.length,
      () => Number.NaN,
    ),
  )

  let countedSeconds = 0
  const cpu = new Counter({
    name: 'process_cpu_seconds_total',
    help: 'Total user and system CPU time in seconds.',
    collect() {
      const { user, system } = process.cpuUsage()
      const seconds = (user + system) / 1e6
      this.inc(Math.max(0, seconds - countedSeconds))
      countedSeconds = Math.max(countedSeconds, seconds)
    },
    registers: [],
  })
  registry.registerMetric(cpu)
}
