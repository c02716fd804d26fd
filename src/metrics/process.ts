import { readdir } from 'node:fs/promises'
import { Counter, Gauge, type Registry } from 'prom-client'

/** What Prometheus expects of every process, under its own names. The library's own set asks for what only Node has. */
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

  gauge('process_resident_memory_bytes', 'Memory that the process holds.', () => process.memoryUsage.rss())
  const startedAt = Date.now() / 1000 - process.uptime()
  gauge('process_start_time_seconds', 'When the process started, since the epoch.', () => startedAt)
  // Nothing where there is no such folder.
  gauge('process_open_fds', 'Open files and connections.', () =>
    readdir('/proc/self/fd').then(
      (names) => names.length,
      () => Number.NaN,
    ),
  )

  let countedSeconds = 0
  const cpu = new Counter({
    name: 'process_cpu_seconds_total',
    help: 'Time that the processor worked for the process.',
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
