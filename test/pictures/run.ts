/**
 * Draws the pictures of the README and the guides into `.github/media`: screens of the real console on a server with two
 * weeks of traffic, and charts of the guide on performance. Usage: `npm run pictures`.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { drawCharts } from './charts.ts'
import { startDemo } from './demo.ts'
import { drawTerminal } from './terminal-svg.ts'

const media = join(import.meta.dir, '../../.github/media')
const size = { columns: 120, rows: 36 }

for (const [name, svg] of Object.entries(drawCharts())) save(name, svg)

const demo = await startDemo()
try {
  const screen = demo.open(size)
  await screen.waitForText('1 Overview')
  await screen.waitForText('updated')
  const shoot = (name: string, title: string) =>
    save(name, drawTerminal(screen.buffer(), size.columns, size.rows, title))
  await screen.waitForTextGone('Loading')
  // The keys of a list appear with its rows.
  await screen.waitForText('open request')
  shoot('console-overview.svg', 'otpd console: overview')
  screen.press('4')
  await screen.waitForText('Logs')
  await demo.sendMore(12)
  await Bun.sleep(2500)
  shoot('console-logs.svg', 'otpd console: live log')
  await screen.close()
} finally {
  await demo.stop()
}

function save(name: string, svg: string) {
  writeFileSync(join(media, name), svg)
  process.stdout.write(`${join('.github/media', name)} (${Math.round(svg.length / 1024)} KB)\n`)
}
