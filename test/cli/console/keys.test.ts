import { describe, expect, test } from 'bun:test'
import { createKeyRouter, typeInto, type Handler, type Layer } from '../../../cli/console/key-router.ts'
import {
  bindingsOf,
  keymap,
  keyName,
  levelOf,
  screenNames,
  type Section,
} from '../../../cli/console/keymap.ts'

const isSection = (name: string): name is Section => name in keymap
const sections = Object.keys(keymap).filter(isSection)

describe('the keymap', () => {
  test.each(sections)('has one meaning for each key of %s', (section) => {
    const keys = bindingsOf(section).flatMap(([, binding]) => binding.keys)
    expect(keys).toEqual([...new Set(keys)])
  })

  test.each(screenNames)('of %s leaves what works everywhere alone', (screen) => {
    const everywhere = new Set(bindingsOf('everywhere').flatMap(([, { keys }]) => keys))
    const taken = bindingsOf(screen).flatMap(([, { keys }]) => keys.filter((key) => everywhere.has(key)))
    expect(taken).toEqual([])
  })

  test('opens the six screens with 1 to 6, in the order of the header', () => {
    const numbered = bindingsOf('everywhere').filter(([, { keys }]) => /^\d$/.test(keys[0] ?? ''))
    expect(numbered.map(([action]) => action)).toEqual([...screenNames])
    expect(numbered.map(([, { keys }]) => keys[0])).toEqual(['1', '2', '3', '4', '5', '6'])
  })

  test('destroys nothing with a small letter', () => {
    const destroying = sections
      .flatMap((section) => bindingsOf(section))
      .filter(([action]) => /delete|remove|rotate/.test(action))
      .flatMap(([, { keys }]) => keys)
    for (const key of destroying) expect(key).toMatch(/^([A-Z]|ctrl-.)$/)
  })
})

const noKey = {
  upArrow: false,
  downArrow: false,
  leftArrow: false,
  rightArrow: false,
  pageDown: false,
  pageUp: false,
  home: false,
  end: false,
  return: false,
  escape: false,
  ctrl: false,
  shift: false,
  tab: false,
  backspace: false,
  delete: false,
  meta: false,
}

test.each([
  ['x', 'x', {}],
  ['G', 'G', { shift: true }],
  ['up', '', { upArrow: true }],
  ['enter', '', { return: true }],
  ['shift-tab', '', { tab: true, shift: true }],
  ['ctrl-c', 'c', { ctrl: true }],
  ['alt-x', 'x', { meta: true }],
])('what was pressed is named %s', (name, input, pressed) => {
  expect(keyName(input, { ...noKey, ...pressed })).toBe(name)
})

function createKeys(isReadOnly = false) {
  const told: string[] = []
  const done: string[] = []
  const router = createKeyRouter({ isReadOnly, tell: (reason) => told.push(reason) })
  const layer = (section: Section, handlers: Record<string, Handler>, over: Partial<Layer> = {}): Layer => ({
    section,
    handlers,
    isModal: false,
    ...over,
  })
  return {
    told,
    done,
    router,
    layer,
    act: (name: string) => () => void done.push(name),
    /** Each key when what the one before has done is there. */
    async press(...keys: string[]) {
      for (const key of keys) {
        router.press(key)
        await new Promise(setImmediate)
      }
    },
  }
}

describe('a key', () => {
  test('goes to the nearest layer that knows it, whatever order they came in', async () => {
    const { router, layer, act, done, press } = createKeys()
    router.add(layer('detail', { back: act('detail') }))
    router.add(layer('everywhere', { quit: act('quit') }))
    const remove = router.add(layer('logs', { back: act('logs') }))
    await press('esc')
    remove()
    await press('esc', 'q', 'x')
    expect(done).toEqual(['logs', 'detail', 'quit'])
  })

  test('goes no further than a dialog, which is all that is shown then', async () => {
    const { router, layer, act, done, press } = createKeys()
    router.add(layer('everywhere', { quit: act('quit'), help: act('help') }))
    router.add(layer('dialog', { cancel: act('cancel') }, { isModal: true }))
    await press('q', 'esc')
    expect(done).toEqual(['cancel'])
    expect(router.shown().map(({ action }) => action)).toEqual(['cancel'])
  })

  test('is text where a dialog takes text, and so is a paste; nowhere else is a paste anything', async () => {
    const { router, layer, act, done, press } = createKeys()
    router.add(layer('everywhere', { quit: act('quit') }))
    router.paste('q')
    let text = ''
    const onText: Layer['onText'] = (typed) => void (text = typeInto(text, typed))
    router.add(layer('dialog', { accept: act(`accept`) }, { isModal: true, onText }))
    await press('s', 'h', 'o', 'b', 'backspace', 'p', 'enter', 'up')
    router.paste(' and\nmore')
    await new Promise(setImmediate)
    expect([text, ...done]).toEqual(['shop andmore', 'accept'])
  })

  test('that cannot do anything now says why', async () => {
    const { router, layer, told, press } = createKeys()
    router.add(layer('list', { filter: { unavailable: 'there is nothing to filter' } }))
    await press('/')
    expect(told).toEqual(['/ is unavailable: there is nothing to filter'])
    expect(router.shown()).toMatchObject([{ action: 'filter', unavailable: 'there is nothing to filter' }])
  })

  test('that changes something does nothing under --read-only, and is shown so', async () => {
    const changing = sections.flatMap((section) =>
      bindingsOf(section).flatMap(([action, { mutates, keys }]) =>
        mutates ? [{ section, action, keys }] : [],
      ),
    )
    for (const { section, action, keys } of changing) {
      const { router, layer, act, done, told, press } = createKeys(true)
      router.add(layer(section, { [action]: act(action) }))
      await press(keys[0] ?? '')
      expect(done).toEqual([])
      expect(told[0]).toContain('--read-only')
    }
  })

  test('hidden by a nearer one is not in the footer', () => {
    const { router, layer, act } = createKeys()
    router.add(layer('list', { clear: act('clear') }))
    router.add(layer('logs', { back: act('back') }))
    expect(router.shown().map(({ action }) => action)).toEqual(['back'])
  })
})

test('dialogs are nearer than screens, screens than lists, lists than what works everywhere', () => {
  expect(['dialog', 'logs', 'list', 'everywhere'].filter(isSection).map(levelOf)).toEqual([3, 2, 1, 0])
})

test('footer and help are told of a change only where they would look different', () => {
  const { router, layer, act } = createKeys()
  const one = layer('logs', { clear: act('a') })
  router.add(one)
  const before = router.version.get()
  one.handlers = { clear: act('b') }
  router.update(one)
  expect(router.version.get()).toBe(before)
  one.handlers = { clear: { unavailable: 'no' } }
  router.update(one)
  expect(router.version.get()).toBe(before + 1)
})
