/** One key binding: which keys, and what they are said to do. */
export type Binding = {
  /** As `keyName` names them: `j`, `G`, `enter`, `shift-tab`, `ctrl-d`. The first is shown. */
  keys: readonly string[]
  /** In the footer: a word or two. */
  label: string
  /** For the help screen, where the label is too short to be understood. */
  about?: string
  /** Changes something on the server, so --read-only takes it away. */
  mutates?: true
  /** Kept out of the footer, where there is little room; the help screen has it. */
  isHelpOnly?: true
  /** In the footer before all others, at its end: how to get on, and out again. */
  isPinned?: true
}

/**
 * The keys of each screen. The order of the screens is that of the tabs in the header, and gives them their digits.
 */
const screenKeymap = {
  overview: {
    range: { keys: ['t'], label: 'range', about: '7, 30 or 90 days' },
    open: { keys: ['enter'], label: 'open', about: 'the request behind the selected failure' },
    webhook: { keys: ['w'], label: 'webhook', about: 'the webhook that fails' },
  },
  apps: {
    open: { keys: ['enter'], label: 'open' },
    show: { keys: ['v'], label: 'show', about: 'uncover the webhook secret for 30 seconds' },
    copy: { keys: ['y'], label: 'copy' },
    language: { keys: ['t'], label: 'language', about: 'the same in curl or in TypeScript' },
    logs: { keys: ['o'], label: 'live log', about: 'the log of this application alone' },
    nextTab: { keys: [']', 'right'], label: 'tab', about: 'the next tab' },
    previousTab: { keys: ['[', 'left'], label: 'previous tab', isHelpOnly: true },
    create: {
      keys: ['n'],
      label: 'new',
      about: 'a project, an application in it, or a webhook',
      mutates: true,
    },
    rotate: { keys: ['R'], label: 'rotate', about: 'replace the credential at once', mutates: true },
    edit: { keys: ['e'], label: 'edit', about: 'change its name and what else it has', mutates: true },
    toggle: { keys: ['x'], label: 'disable', about: 'refuse its calls, or take them again', mutates: true },
    remove: { keys: ['D'], label: 'delete', about: 'delete it, once its name was typed', mutates: true },
  },
  otp: {
    open: { keys: ['enter'], label: 'open', about: 'all that is known of the request' },
    send: {
      keys: ['S'],
      label: 'send',
      about: 'send a code, as the application of the environment',
      mutates: true,
    },
    verify: { keys: ['V'], label: 'verify', about: 'check a code', mutates: true },
    resend: { keys: ['R'], label: 'resend', about: 'send the same code once more', mutates: true },
    cancel: { keys: ['D'], label: 'cancel', about: 'make the code worthless', mutates: true },
    app: { keys: ['a'], label: 'app', about: 'in the list: the next application, then all again' },
    status: { keys: ['s'], label: 'status', about: 'pending, verified and so on, then all again' },
    copy: { keys: ['y'], label: 'copy id' },
  },
  logs: {
    filter: { keys: ['f'], label: 'narrow', about: 'only one application, one type, one phone' },
    type: { keys: ['t'], label: 'type', about: 'failures, deliveries and so on, then all again' },
    app: { keys: ['a'], label: 'this app', about: 'only the application of this entry, then all again' },
    open: { keys: ['enter'], label: 'detail', about: 'everything that is known of the entry' },
    request: { keys: ['o'], label: 'request', about: 'the OTP request of the entry' },
    copy: { keys: ['y'], label: 'copy' },
    back: { keys: ['esc'], label: 'close', isPinned: true },
    clear: { keys: ['c'], label: 'clear', about: 'begin with an empty list', isHelpOnly: true },
  },
  webhooks: {
    open: { keys: ['enter'], label: 'open' },
    create: { keys: ['n'], label: 'new', about: 'have events sent to a URL', mutates: true },
    edit: { keys: ['e'], label: 'edit', about: 'change its URL, events or description', mutates: true },
    test: { keys: ['T'], label: 'test', about: 'send one signed otp.verified now', mutates: true },
    toggle: { keys: ['x'], label: 'disable', about: 'disable it, or enable it again', mutates: true },
    redeliver: { keys: ['R'], label: 'resend', about: 'send the event once more, now', mutates: true },
    failures: { keys: ['f'], label: 'failures', about: 'only deliveries that failed, then all again' },
    remove: {
      keys: ['D'],
      label: 'delete',
      about: 'delete it, with what is on its way there',
      mutates: true,
    },
    copy: { keys: ['y'], label: 'copy id' },
  },
  inbox: {
    copy: { keys: ['y'], label: 'copy code' },
    open: { keys: ['enter'], label: 'open request' },
  },
} as const satisfies Record<string, Record<string, Binding>>

export type ScreenName = keyof typeof screenKeymap

const isScreenName = (name: string): name is ScreenName => name in screenKeymap

/** In the order of the header. */
export const screenNames: readonly ScreenName[] = Object.keys(screenKeymap).filter(isScreenName)

const digitBindings: Record<string, Binding> = Object.fromEntries(
  screenNames.map((name, index) => [
    name,
    { keys: [String(index + 1)], label: name, isHelpOnly: true } satisfies Binding,
  ]),
)

/**
 * Every key of the console. Input, footer and help all read this table, so they cannot disagree. A section is active
 * while a component calls `useKeys` with it. When two active sections bind the same key, the order is: dialogs, the
 * screen, lists and details, global keys.
 */
export const keymap = {
  ...screenKeymap,
  screens: digitBindings,
  everywhere: {
    refresh: { keys: ['r'], label: 'refresh', about: 'ask the server now' },
    pause: { keys: ['p'], label: 'pause', about: 'stop what moves, or let it move again' },
    unmask: { keys: ['m'], label: 'phones', about: 'show phone numbers in full, or mask them again' },
    suspend: { keys: ['ctrl-z'], label: 'suspend', about: 'back to the shell; fg returns', isHelpOnly: true },
    help: { keys: ['?'], label: 'keys', isPinned: true },
    quit: { keys: ['q'], label: 'quit', isPinned: true },
  },
  list: {
    down: { keys: ['j', 'down'], label: 'down', isHelpOnly: true },
    up: { keys: ['k', 'up'], label: 'up', isHelpOnly: true },
    pageDown: { keys: ['pagedown', 'ctrl-f'], label: 'a page down', isHelpOnly: true },
    pageUp: { keys: ['pageup', 'ctrl-b'], label: 'a page up', isHelpOnly: true },
    top: { keys: ['g', 'home'], label: 'top', isHelpOnly: true },
    bottom: { keys: ['G', 'end'], label: 'bottom', isHelpOnly: true },
    filter: { keys: ['/'], label: 'filter', about: 'show only rows that contain what you type' },
    clear: { keys: ['esc'], label: 'all rows', about: 'end the filter', isPinned: true },
  },
  filter: {
    keep: { keys: ['enter'], label: 'keep the filter' },
    clear: { keys: ['esc'], label: 'all rows' },
  },
  detail: {
    back: { keys: ['esc'], label: 'back', isPinned: true },
    show: { keys: ['v'], label: 'show', about: 'uncover the secret for 30 seconds' },
    copy: { keys: ['y'], label: 'copy' },
    nextPane: { keys: ['tab'], label: 'pane', about: 'the other half of the screen', isPinned: true },
    previousPane: { keys: ['shift-tab'], label: 'previous pane', isHelpOnly: true },
  },
  help: {
    down: { keys: ['j', 'down'], label: 'down' },
    up: { keys: ['k', 'up'], label: 'up' },
    pageDown: { keys: ['pagedown', ' '], label: 'a page down', isHelpOnly: true },
    pageUp: { keys: ['pageup'], label: 'a page up', isHelpOnly: true },
    close: { keys: ['esc', '?', 'q'], label: 'back' },
  },
  dialog: {
    accept: { keys: ['enter'], label: 'done' },
    nextField: { keys: ['tab', 'down'], label: 'next field', isHelpOnly: true },
    previousField: { keys: ['shift-tab', 'up'], label: 'previous field', isHelpOnly: true },
    cancel: { keys: ['esc'], label: 'cancel' },
  },
  tooSmall: {
    quit: { keys: ['q'], label: 'quit' },
  },
  issued: {
    save: { keys: ['s'], label: 'save', about: 'in a new file that only you can read' },
    show: { keys: ['v'], label: 'show', about: 'uncover the secrets for 30 seconds' },
    copy: { keys: ['y'], label: 'copy' },
    done: { keys: ['esc', 'enter'], label: 'done' },
    down: { keys: ['j', 'down'], label: 'down', isHelpOnly: true },
    up: { keys: ['k', 'up'], label: 'up', isHelpOnly: true },
  },
} as const satisfies Record<string, Record<string, Binding>>

export type Section = keyof typeof keymap
export type Action<S extends Section> = Extract<keyof (typeof keymap)[S], string>

/** The bindings of a section in the order of the table. */
export const sectionBindings = (section: Section): readonly (readonly [action: string, binding: Binding])[] =>
  Object.entries<Binding>(keymap[section])

const modalSections: ReadonlySet<Section> = new Set(['dialog', 'filter', 'help'])

/** How near to the eye a section is: the higher is asked first. */
export function priorityOf(section: Section) {
  if (section === 'everywhere' || section === 'screens') return 0
  if (section === 'list' || section === 'detail') return 1
  if (section === 'tooSmall') return 4
  return modalSections.has(section) ? 3 : 2
}

const keyLabels: Partial<Record<string, string>> = {
  enter: 'enter',
  up: '↑',
  down: '↓',
  left: '←',
  right: '→',
  pagedown: 'PgDn',
  pageup: 'PgUp',
  'shift-tab': 'S-tab',
}

/** A key as it is written on the screen. */
export const formatKey = (key: string, isAscii: boolean) =>
  key.startsWith('ctrl-') ? `^${key.slice(5).toUpperCase()}` : (!isAscii && keyLabels[key]) || key

type PressedKey = {
  upArrow: boolean
  downArrow: boolean
  leftArrow: boolean
  rightArrow: boolean
  pageDown: boolean
  pageUp: boolean
  home: boolean
  end: boolean
  return: boolean
  escape: boolean
  ctrl: boolean
  shift: boolean
  tab: boolean
  backspace: boolean
  delete: boolean
  meta: boolean
}

/** The name of what Ink says was pressed; text stands for itself. Alt is not used: `alt-x` is no `x`. */
export function keyName(input: string, key: PressedKey): string {
  if (key.upArrow) return 'up'
  if (key.downArrow) return 'down'
  if (key.leftArrow) return 'left'
  if (key.rightArrow) return 'right'
  if (key.pageDown) return 'pagedown'
  if (key.pageUp) return 'pageup'
  if (key.home) return 'home'
  if (key.end) return 'end'
  if (key.return) return 'enter'
  if (key.escape) return 'esc'
  if (key.tab) return key.shift ? 'shift-tab' : 'tab'
  if (key.backspace || key.delete) return 'backspace'
  if (key.ctrl) return `ctrl-${input}`
  return key.meta ? `alt-${input}` : input
}
