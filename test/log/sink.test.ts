import { afterEach, describe, expect, test } from 'bun:test'
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog, descriptorSink } from '../../src/log/log.ts'
import { testClock } from '../helpers/clock.ts'

describe('writing', () => {
  const paths: string[] = []
  afterEach(() => {
    for (const path of paths.splice(0)) rmSync(path, { recursive: true, force: true })
  })

  function makePipe(): string {
    const folder = mkdtempSync(join(tmpdir(), 'otpd-log-'))
    paths.push(folder)
    Bun.spawnSync(['mkfifo', join(folder, 'pipe')])
    return join(folder, 'pipe')
  }

  test('does not wait for the reader, drops lines beyond the limit and says how many', async () => {
    const written: string[] = []
    let open = () => {}
    const gate = new Promise<void>((resolve) => (open = resolve))
    const write = async (text: string) => {
      await gate
      written.push(text)
    }
    const log = createLog({ format: 'json', level: 'info', write, clock: testClock() })
    for (let index = 0; index < 2000; index++) log.info(`line ${index}`, { padding: 'x'.repeat(1000) })
    open()
    await log.flush()
    const lines = written.join('').trim().split('\n')
    const notice: unknown = JSON.parse(lines.at(-1) ?? '')
    expect(notice).toMatchObject({ level: 'warn', count: 2000 - (lines.length - 1) })
    expect(lines.length).toBeLessThan(1100)
    expect(lines[0]).toContain('line 0')
  })

  test('continues after the sink fails, and says how many lines were lost', async () => {
    const written: string[] = []
    let fails = true
    const write = async (text: string) => {
      if (fails) throw new Error('EPIPE')
      written.push(text)
    }
    const log = createLog({ format: 'text', level: 'info', write, clock: testClock() })
    log.info('one')
    log.info('two')
    await log.flush()
    fails = false
    log.info('three')
    await log.flush()
    expect(written.join('')).toMatch(/three\n.*dropped.* count=2\n$/)
  })

  test('keeps the order and makes one call at a time', async () => {
    let under = 0
    let text = ''
    const write = async (lines: string) => {
      expect(++under).toBe(1)
      await Promise.resolve()
      text += lines
      under--
    }
    const log = createLog({ format: 'text', level: 'info', write, clock: testClock() })
    for (let index = 0; index < 50; index++) {
      log.info(`n${index}`)
      if (index % 7 === 0) await Promise.resolve()
    }
    await log.flush()
    expect([...(text.match(/n\d+/g) ?? [])]).toEqual(Array.from({ length: 50 }, (_, index) => `n${index}`))
  })

  test.each([
    ['blocks', constants.O_RDWR],
    ['does not block', constants.O_RDWR | constants.O_NONBLOCK],
  ])('fills a pipe that %s without holding up the event loop', async (_, flags) => {
    const path = makePipe()
    const [writer, reader] = [
      openSync(path, flags),
      openSync(path, constants.O_RDONLY | constants.O_NONBLOCK),
    ]
    const text = 'é'.repeat(200_000)
    let isDone = false
    const written = descriptorSink(writer)(text).then(() => (isDone = true))
    // The pipe takes 64 KiB, so the rest is still to come when this runs.
    await new Promise((resolve) => setImmediate(resolve))
    expect(isDone).toBe(false)
    const chunks: Buffer[] = []
    for (let length = 0; length < 400_000;) {
      const chunk = Buffer.alloc(65_536)
      try {
        const count = readSync(reader, chunk)
        chunks.push(chunk.subarray(0, count))
        length += count
      } catch {
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
    await written
    expect(Buffer.concat(chunks).toString() === text).toBe(true)
    closeSync(writer)
    closeSync(reader)
  })

  test('fails when the reader has closed its end', async () => {
    const path = makePipe()
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const writer = openSync(path, constants.O_WRONLY)
    closeSync(reader)
    await expect(descriptorSink(writer)('x')).rejects.toMatchObject({ code: 'EPIPE' })
    closeSync(writer)
  })
})
