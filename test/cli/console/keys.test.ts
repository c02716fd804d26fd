import { describe, expect, test } from 'bun:test'
import { createKeyRouter, applyTyping, type Handler, type Layer } from '../../../cli/console/key-router.ts'
import {
  digitScreens,
  keymap,
  priorityOf,
  screenNames,
  sectionBindings,
  type Section,
} from '../../../cli/console/keymap.ts'
import { keyName } from '../../../cli/console/key-names.ts'
import { screens } from '../../../cli/console/screens.ts'

const isSection = (name: string): name is Section => name in keymap
const sections = Object.keys(keymap).filter(isSection)

describe('the keymap', () => {
  test.each(sections)('binds each key of %s once', (section) => {
    const keys = sectionBindings(section).flatMap(([, binding]) => binding.keys)
    expect(keys).toEqual([...new Set(keys)])
  })

  test.each(screenNames)('of %s shadows no global key', (screen) => {
    const everywhere = new Set(
      [...sectionBindings('everywhere'), ...sectionBindings('screens')].flatMap(([, { keys }]) => keys),
    )
    const shadowedKeys = sectionBindings(screen).flatMap(([, { keys }]) =>
      keys.filter((key) => everywhere.has(key)),
    )
    expect(shadowedKeys).toEqual([])
  })

  test('opens the screens with number keys, in the order of the header', () => {
    const digits = sectionBindings('screens')
    expect(digits.map(([action]) => action)).toEqual([...digitScreens])
    expect(digits.flatMap(([, { keys }]) => keys).join('')).toBe('1234567890-')
    // New screens follow these, so that no digit changes its meaning.
    expect(digitScreens.map((name) => screens[name].title)).toEqual([
      'Overview',
      'Apps',
      'OTP',
      'Logs',
      'Webhooks',
      'Inbox',
      'Users',
      'Audit',
      'Providers',
      'Guard',
      'Profile',
    ])
  })

  test('uses no lowercase letter for a destructive action', () => {
    const destroying = sections
      .flatMap((section) => sectionBindings(section))
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
  super: false,
  hyper: false,
  capsLock: false,
  numLock: false,
}

test.each([
  ['x', 'x', {}],
  ['G', 'G', { shift: true }],
  ['up', '', { upArrow: true }],
  ['enter', '', { return: true }],
  ['shift-tab', '', { tab: true, shift: true }],
  ['ctrl-c', 'c', { ctrl: true }],
  ['alt-x', 'x', { meta: true }],
])('a key press is named %s', (name, input, pressed) => {
  expect(keyName(input, { ...noKey, ...pressed })).toBe(name)
})

function createKeyRouterFixture(isReadOnly = false) {
  const messages: string[] = []
  const done: string[] = []
  const router = createKeyRouter({ isReadOnly, notify: (reason) => messages.push(reason) })
  const layer = (
    section: Section,
    handlers: Record<string, Handler>,
    overrides: Partial<Layer> = {},
  ): Layer => ({
    section,
    handlers,
    isModal: false,
    ...overrides,
  })
  return {
    messages,
    done,
    router,
    layer,
    act: (name: string) => () => void done.push(name),
    /** Presses each key after the effect of the one before. */
    async press(...keys: string[]) {
      for (const key of keys) {
        router.press(key)
        await new Promise(setImmediate)
      }
    },
  }
}

describe('a key', () => {
  test('goes to the topmost layer that handles it, in whatever order they were added', async () => {
    const { router, layer, act, done, press } = createKeyRouterFixture()
    router.add(layer('detail', { back: act('detail') }))
    router.add(layer('everywhere', { quit: act('quit') }))
    const nearest = router.add(layer('logs', { back: act('logs') }))
    await press('esc')
    nearest.remove()
    await press('esc', 'q', 'x')
    expect(done).toEqual(['logs', 'detail', 'quit'])
  })

  test('does not pass a dialog, whose keys are the only active ones', async () => {
    const { router, layer, act, done, press } = createKeyRouterFixture()
    router.add(layer('everywhere', { quit: act('quit'), help: act('help') }))
    router.add(layer('dialog', { cancel: act('cancel') }, { isModal: true }))
    await press('q', 'esc')
    expect(done).toEqual(['cancel'])
    expect(router.activeBindings().map(({ action }) => action)).toEqual(['cancel'])
  })

  test('is text in a dialog that takes text, and so is a paste; elsewhere a paste is dropped', async () => {
    const { router, layer, act, done, press } = createKeyRouterFixture()
    router.add(layer('everywhere', { quit: act('quit') }))
    router.paste('q')
    let text = ''
    const onText: Layer['onText'] = (typed) => void (text = applyTyping(text, typed))
    router.add(layer('dialog', { accept: act(`accept`) }, { isModal: true, onText }))
    await press('s', 'h', 'o', 'b', 'backspace', 'p', 'enter', 'up')
    router.paste(' and\nmore')
    await new Promise(setImmediate)
    expect([text, ...done]).toEqual(['shop andmore', 'accept'])
  })

  test('that is unavailable says why', async () => {
    const { router, layer, messages, press } = createKeyRouterFixture()
    router.add(layer('list', { filter: { unavailable: 'there is nothing to filter' } }))
    await press('/')
    expect(messages).toEqual(['/ is unavailable: there is nothing to filter'])
    expect(router.activeBindings()).toMatchObject([
      { action: 'filter', unavailable: 'there is nothing to filter' },
    ])
  })

  test('that changes something is unavailable under --read-only, and says so', async () => {
    const mutatingBindings = sections.flatMap((section) =>
      sectionBindings(section).flatMap(([action, { mutates, keys }]) =>
        mutates ? [{ section, action, keys }] : [],
      ),
    )
    for (const { section, action, keys } of mutatingBindings) {
      const { router, layer, act, done, messages, press } = createKeyRouterFixture(true)
      router.add(layer(section, { [action]: act(action) }))
      await press(keys[0] ?? '')
      expect(done).toEqual([])
      expect(messages[0]).toContain('--read-only')
    }
  })

  test('that a higher layer takes is not in the footer', () => {
    const { router, layer, act } = createKeyRouterFixture()
    router.add(layer('list', { clear: act('clear') }))
    router.add(layer('logs', { back: act('back') }))
    expect(router.activeBindings().map(({ action }) => action)).toEqual(['back'])
  })

  test('has its place in the footer by the keymap, whichever part of the screen was drawn first', () => {
    const parts = [['edit', 'copy'], ['revoke']]
    for (const order of [parts, parts.toReversed()]) {
      const { router, layer, act } = createKeyRouterFixture()
      for (const actions of order)
        router.add(layer('profile', Object.fromEntries(actions.map((action) => [action, act(action)]))))
      expect(router.activeBindings().map(({ action }) => action)).toEqual(['edit', 'revoke', 'copy'])
    }
  })
})

test('priority decreases from dialogs to screens, lists and global keys', () => {
  expect(['dialog', 'logs', 'list', 'everywhere'].filter(isSection).map(priorityOf)).toEqual([3, 2, 1, 0])
})

test('footer and help are notified only of changes that they show', () => {
  const { router, layer, act } = createKeyRouterFixture()
  const logs = router.add(layer('logs', { clear: act('a') }))
  const before = router.version.get()
  logs.update({ clear: act('b') }, undefined)
  expect(router.version.get()).toBe(before)
  logs.update({ clear: { unavailable: 'no' } }, undefined)
  expect(router.version.get()).toBe(before + 1)
})
