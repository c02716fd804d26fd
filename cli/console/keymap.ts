/** A key binding: its keys and how it is described. */
export type Binding = {
  /** As `keyName` names them: `j`, `G`, `enter`, `shift-tab`, `ctrl-d`. The first is shown. */
  keys: readonly string[]
  /** Shown in the footer: one or two words. */
  label: string
  /** Shown in the help instead of `label`, where that is too short. */
  about?: string
  /** Changes something on the server; disabled by --read-only. */
  mutates?: true
  /** Listed only in the help, to save room in the footer. */
  isHelpOnly?: true
  /** Always shown, at the right end of the footer: the keys for moving on and getting out. */
  isPinned?: true
}

/**
 * The keys of each screen. The order of the screens is that of the tabs in the header; the first eleven have a number key.
 */
const screenKeymap = {
  overview: {
    app: { keys: ['a'], label: 'app', about: 'count only one application' },
    range: { keys: ['t'], label: 'range', about: '7, 30 or 90 days' },
    open: { keys: ['enter'], label: 'open', about: 'open the request behind the selected failure' },
    webhook: { keys: ['w'], label: 'webhook', about: 'open the failing webhook' },
  },
  apps: {
    verify: { keys: ['V'], label: 'verify', about: 'verify the code that was sent here', mutates: true },
    send: { keys: ['S'], label: 'send a code', about: 'send a code and verify it here', mutates: true },
    open: { keys: ['enter'], label: 'open' },
    show: { keys: ['v'], label: 'show', about: 'reveal the webhook secret for 30 seconds' },
    copy: { keys: ['y'], label: 'copy' },
    language: { keys: ['t'], label: 'language', about: 'switch between curl and TypeScript' },
    logs: { keys: ['o'], label: 'live log', about: 'open the log of this application' },
    nextTab: { keys: [']', 'right'], label: 'tab', about: 'next tab' },
    previousTab: { keys: ['[', 'left'], label: 'previous tab', isHelpOnly: true },
    create: {
      keys: ['n'],
      label: 'new',
      about: 'create a project, an application, a webhook or a text',
      mutates: true,
    },
    rotate: { keys: ['R'], label: 'rotate', about: 'replace the credential immediately', mutates: true },
    edit: { keys: ['e'], label: 'edit', about: 'edit its name and settings', mutates: true },
    text: { keys: ['T'], label: 'edit text', about: 'change the selected text of a template', mutates: true },
    page: { keys: ['P'], label: 'page', about: 'set up its ready page', mutates: true },
    link: { keys: ['L'], label: 'link', about: 'make a link to its ready page, and copy it', mutates: true },
    toggle: { keys: ['x'], label: 'disable', about: 'disable it, or enable it again', mutates: true },
    remove: { keys: ['D'], label: 'delete', about: 'delete it, after you type its name', mutates: true },
  },
  otp: {
    open: { keys: ['enter'], label: 'open', about: 'show the details of the request' },
    send: {
      keys: ['S'],
      label: 'send',
      about: 'send a code as one of your applications',
      mutates: true,
    },
    verify: { keys: ['V'], label: 'verify', about: 'verify the code', mutates: true },
    resend: { keys: ['R'], label: 'resend', about: 'send the same code again', mutates: true },
    cancel: { keys: ['D'], label: 'cancel', about: 'cancel the pending code', mutates: true },
    app: { keys: ['a'], label: 'app', about: 'pick an application; in a request, open its application' },
    phone: { keys: ['f'], label: 'same phone', about: 'list all requests of this phone number' },
    status: { keys: ['s'], label: 'status', about: 'filter by status: pending, verified and so on' },
    unlock: { keys: ['u'], label: 'unlock', about: 'reset the limits of the phone number', mutates: true },
    erase: { keys: ['X'], label: 'erase', about: 'erase the phone number from all records', mutates: true },
    copy: { keys: ['y'], label: 'copy id' },
  },
  logs: {
    filter: { keys: ['f'], label: 'filter by', about: 'filter by application, type or phone' },
    type: { keys: ['t'], label: 'type', about: 'filter by type: failures, deliveries and so on' },
    app: { keys: ['a'], label: 'app', about: 'pick an application' },
    open: { keys: ['enter'], label: 'detail', about: 'show the details of the entry' },
    request: { keys: ['o'], label: 'request', about: 'open the OTP request of the entry' },
    copy: { keys: ['y'], label: 'copy' },
    back: { keys: ['esc'], label: 'close', isPinned: true },
    clear: { keys: ['c'], label: 'clear', about: 'clear the list', isHelpOnly: true },
  },
  webhooks: {
    open: { keys: ['enter'], label: 'open' },
    create: { keys: ['n'], label: 'new', about: 'send events to a URL', mutates: true },
    edit: { keys: ['e'], label: 'edit', about: 'edit its URL, events or description', mutates: true },
    test: { keys: ['T'], label: 'test', about: 'send a signed test event now', mutates: true },
    toggle: { keys: ['x'], label: 'disable', about: 'disable it, or enable it again', mutates: true },
    redeliver: { keys: ['R'], label: 'redeliver', about: 'send the event again now', mutates: true },
    failures: { keys: ['f'], label: 'failures', about: 'show only failed deliveries, or all' },
    request: { keys: ['t'], label: 'request', about: 'show the newest request as it was sent' },
    remove: {
      keys: ['D'],
      label: 'delete',
      about: 'delete it and its pending deliveries',
      mutates: true,
    },
    copy: { keys: ['y'], label: 'copy id' },
  },
  inbox: {
    copy: { keys: ['y'], label: 'copy code' },
    open: { keys: ['enter'], label: 'open request' },
  },
  users: {
    open: { keys: ['enter'], label: 'requests', about: 'list the requests of this phone number' },
    unlock: { keys: ['u'], label: 'unlock', about: 'reset the limits of the phone number', mutates: true },
    erase: { keys: ['X'], label: 'erase', about: 'erase the phone number from all records', mutates: true },
    copy: { keys: ['y'], label: 'copy id' },
  },
  audit: {
    open: { keys: ['enter'], label: 'detail', about: 'show the details of the entry' },
    copy: { keys: ['y'], label: 'copy id' },
  },
  providers: {
    open: { keys: ['enter'], label: 'open', about: 'show the messages that it did not accept' },
    range: { keys: ['t'], label: 'range', about: '7, 30 or 90 days' },
    copy: { keys: ['y'], label: 'copy name' },
  },
  guard: {
    open: { keys: ['enter'], label: 'open request' },
    allow: { keys: ['a'], label: 'allow', about: 'let codes to a destination pass', mutates: true },
    deny: {
      keys: ['d'],
      label: 'deny',
      about: 'refuse codes to a destination, or from a network',
      mutates: true,
    },
    remove: { keys: ['D'], label: 'remove', about: 'remove a rule that allows or denies', mutates: true },
    rules: { keys: ['t'], label: 'rules', about: 'show the rules in full' },
  },
  profile: {
    edit: { keys: ['e'], label: 'edit', about: 'edit your name and company', mutates: true },
    create: { keys: ['n'], label: 'new token', about: 'create an API token', mutates: true },
    revoke: { keys: ['D'], label: 'revoke', about: 'revoke the selected API token', mutates: true },
    copy: { keys: ['y'], label: 'copy id' },
  },
  costs: {
    range: { keys: ['t'], label: 'range', about: '7, 30 or 90 days' },
    copy: { keys: ['y'], label: 'copy cost', about: 'copy the cost per verified code' },
  },
  routes: {
    copy: { keys: ['y'], label: 'copy name', about: 'copy the name of the provider that comes first' },
  },
  alerts: {
    test: { keys: ['T'], label: 'test', about: 'send a test to every destination', mutates: true },
    copy: { keys: ['y'], label: 'copy alert' },
  },
} as const satisfies Record<string, Record<string, Binding>>

export type ScreenName = keyof typeof screenKeymap

const isScreenName = (name: string): name is ScreenName => name in screenKeymap

/** The screens, in the order of the tabs. */
export const screenNames: readonly ScreenName[] = Object.keys(screenKeymap).filter(isScreenName)

/** The number keys of the screens, in the order of a keyboard. */
const numberKeys = '1234567890-'

/** The screens with a number key; others are reached by tab and palette. */
export const digitScreens = screenNames.slice(0, numberKeys.length)

/** Returns the number key that opens a screen; an empty text if it has none. */
export const screenDigit = (name: ScreenName) => numberKeys[screenNames.indexOf(name)] ?? ''

const digitBindings: Record<string, Binding> = Object.fromEntries(
  digitScreens.map((name) => [
    name,
    { keys: [screenDigit(name)], label: name, isHelpOnly: true } satisfies Binding,
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
    palette: { keys: [':'], label: 'go to', about: 'search screens, applications, requests and actions' },
    find: { keys: ['/'], label: 'find', about: 'find the requests of a phone number' },
    pause: { keys: ['p'], label: 'pause', about: 'pause or resume updates' },
    unmask: { keys: ['m'], label: 'phones', about: 'show or mask phone numbers' },
    environment: {
      keys: ['E'],
      label: 'live/test',
      about: 'show live and test, only live, or only test',
    },
    refresh: { keys: ['r'], label: 'refresh', about: 'fetch from the server now' },
    suspend: {
      keys: ['ctrl-z'],
      label: 'suspend',
      about: 'suspend to the shell; fg resumes',
      isHelpOnly: true,
    },
    help: { keys: ['?'], label: 'keys', about: 'list the active keys', isPinned: true },
    quit: { keys: ['q'], label: 'quit', isPinned: true },
  },
  move: {
    next: { keys: ['tab', 'right'], label: 'next screen', isHelpOnly: true },
    previous: { keys: ['shift-tab', 'left'], label: 'previous screen', isHelpOnly: true },
  },
  list: {
    down: { keys: ['j', 'down'], label: 'down', isHelpOnly: true },
    up: { keys: ['k', 'up'], label: 'up', isHelpOnly: true },
    pageDown: { keys: ['pagedown', 'ctrl-f'], label: 'a page down', isHelpOnly: true },
    pageUp: { keys: ['pageup', 'ctrl-b'], label: 'a page up', isHelpOnly: true },
    top: { keys: ['g', 'home'], label: 'top', isHelpOnly: true },
    bottom: { keys: ['G', 'end'], label: 'bottom', isHelpOnly: true },
    filter: { keys: ['/'], label: 'filter', about: 'show only rows that contain the typed text' },
    clear: { keys: ['esc'], label: 'all rows', about: 'clear the filter', isPinned: true },
  },
  filter: {
    keep: { keys: ['enter'], label: 'keep the filter' },
    clear: { keys: ['esc'], label: 'all rows' },
  },
  detail: {
    back: { keys: ['esc'], label: 'back', isPinned: true },
    show: { keys: ['v'], label: 'show', about: 'reveal the secret for 30 seconds' },
    copy: { keys: ['y'], label: 'copy' },
    nextPane: { keys: ['right'], label: 'pane', about: 'switch to the next pane' },
    previousPane: { keys: ['left'], label: 'pane', about: 'switch to the pane before', isHelpOnly: true },
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
  pick: {
    accept: { keys: ['enter'], label: 'choose' },
    down: { keys: ['down', 'tab'], label: 'down' },
    up: { keys: ['up', 'shift-tab'], label: 'up', isHelpOnly: true },
    cancel: { keys: ['esc'], label: 'cancel' },
  },
  tooSmall: {
    quit: { keys: ['q'], label: 'quit' },
  },
  issued: {
    save: { keys: ['s'], label: 'save', about: 'save to a new file that only you can read' },
    show: { keys: ['v'], label: 'show', about: 'reveal the secrets for 30 seconds' },
    copy: { keys: ['y'], label: 'copy' },
    done: { keys: ['esc', 'enter'], label: 'done' },
    down: { keys: ['j', 'down'], label: 'down', isHelpOnly: true },
    up: { keys: ['k', 'up'], label: 'up', isHelpOnly: true },
  },
} as const satisfies Record<string, Record<string, Binding>>

export type Section = keyof typeof keymap
export type Action<S extends Section> = Extract<keyof (typeof keymap)[S], string>

/** Returns the bindings of a section, in the order of the table. */
export const sectionBindings = (section: Section): readonly (readonly [action: string, binding: Binding])[] =>
  Object.entries<Binding>(keymap[section])

const modalSections: ReadonlySet<Section> = new Set(['dialog', 'pick', 'filter', 'help'])

/** Dispatch priority of a section: among the active ones, the highest gets a key first. */
export function priorityOf(section: Section) {
  if (section === 'everywhere' || section === 'screens' || section === 'move') return 0
  if (section === 'list' || section === 'detail') return 1
  if (section === 'tooSmall') return 4
  return modalSections.has(section) ? 3 : 2
}
