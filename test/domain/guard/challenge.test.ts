import { describe, expect, test } from 'bun:test'
import { poolKey, type GuardedMessage } from '../../../src/domain/guard/row-keys.ts'
import { createGuardFixture, createMemoryGuardStore, guardOff, usageOf } from '../../helpers/guard.ts'

const challenge = { kind: 'altcha' } as const
const none = { outcome: 'none' } as const
const passed = { outcome: 'passed', once: undefined } as const
const once = (name: string) => ({ outcome: 'passed', once: `challenge ${name}` }) as const

function open(settings = {}) {
  const memory = createMemoryGuardStore()
  const fixture = createGuardFixture(memory, { ...guardOff, challenge, ...settings })
  /** Sends messages of a country. @returns the last verdict */
  const send = async (count: number, changes: Partial<GuardedMessage> = {}) => {
    let verdict
    for (let n = 0; n < count; n++) verdict = await fixture.evaluate(fixture.createRequest(changes))
    // Nothing is in flight.
    fixture.clock.advance(5 * 60_000)
    return verdict
  }
  const pool = () => usageOf(memory.rows.get(poolKey('dev_1')), fixture.clock.now()).unverified
  return { ...fixture, memory, send, pool }
}

describe('a challenge', () => {
  test('is needed where an allowance is spent, of a caller that can show one', async () => {
    const { send } = open()
    for (let part = 0; part < 4; part++) await send(25)
    expect(await send(1, { challenge: none })).toMatchObject({ blocked: true, challenge: 'needed' })
    expect(await send(1, { challenge: { outcome: 'failed' } })).toMatchObject({ challenge: 'needed' })
    const unable = await send(1)
    expect([unable?.blocked, unable?.challenge]).toEqual([true, undefined])
  })

  test('passes three times the allowance, and no more', async () => {
    const { send } = open()
    for (let part = 0; part < 12; part++) await send(25, { challenge: passed })
    const beyond = await send(1, { challenge: passed })
    expect([beyond?.blocked, beyond?.challenge]).toEqual([true, undefined])
    const plain = await send(1, { challenge: none })
    expect([plain?.blocked, plain?.challenge]).toEqual([true, undefined])
  })

  test('of a country with evidence is paid by its own allowance up to three times, not by the pool', async () => {
    const { send, verify, createRequest, evaluate, pool } = open()
    const request = createRequest()
    await evaluate(request)
    await verify(request)
    await send(20)
    const before = pool()
    await send(20, { challenge: passed })
    expect(pool()).toBe(before)
    await send(1)
    expect(pool()).toBe(before + 1)
  })

  test('counts once, also if it was not needed', async () => {
    const { send, memory } = open()
    await send(1, { challenge: once('a') })
    expect(memory.rows.get('challenge a')).toBeDefined()
    for (let part = 0; part < 4; part++) await send(25)
    expect(await send(1, { challenge: once('a') })).toMatchObject({ blocked: true, challenge: 'needed' })
    expect(await send(1, { challenge: once('b') })).toMatchObject({ blocked: false, challenge: 'passed' })
    expect(await send(1, { challenge: once('b') })).toMatchObject({ blocked: true, challenge: 'needed' })
  })

  test('is neither asked for nor counted of a message that a list forbids', async () => {
    const { send, memory } = open({ deniedCountries: ['NL'] })
    const denied = await send(1, { challenge: once('a') })
    expect([denied?.blocked, denied?.challenge]).toEqual([true, undefined])
    expect(memory.rows.has('challenge a')).toBe(false)
  })
})
