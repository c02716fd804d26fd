import { Box, useApp, useInput, usePaste, useWindowSize } from 'ink'
import { exitCodes, isRetryable } from '../terminal/errors.ts'
import { relativeTime } from '../terminal/text.ts'
import { ConfirmDialog } from './components/ConfirmDialog.tsx'
import { Footer } from './components/Footer.tsx'
import { FormDialog } from './components/FormDialog.tsx'
import { clockText, Header } from './components/Header.tsx'
import { Help } from './components/Help.tsx'
import { Lines } from './components/Lines.tsx'
import { Palette } from './components/Palette.tsx'
import { PickBox } from './components/PickBox.tsx'
import { Rule } from './components/Rule.tsx'
import { useConsole, type Console, type Dialog, type Environment } from './console-context.ts'
import { ApplicationsContext, usePolledApplications } from './hooks/use-applications.ts'
import { useKeys } from './hooks/use-keys.ts'
import { useNow } from './hooks/use-now.ts'
import { usePollServerState } from './hooks/use-poll-server-state.ts'
import { useShell } from './hooks/use-shell.ts'
import { keyName } from './key-names.ts'
import { digitScreens, screenNames } from './keymap.ts'
import { screens } from './screens.ts'
import { justify, displayWidth, type Line, type Span } from './spans.ts'
import { useStore } from './store.ts'

export const widthMin = 60
const heightMin = 16

/** The root component: reads keys, and draws the frame around the current screen when the terminal is large enough. */
export function App() {
  const { keys, quit } = useConsole()
  const { columns, rows } = useWindowSize()
  useInput((input, key) => {
    const name = keyName(input, key)
    if (name === 'ctrl-c') return quit(exitCodes.interrupted)
    // Keys typed faster than they are read arrive as one text.
    const isText = name === input && [...name].length > 1
    for (const pressed of isText ? name : [name]) keys.press(characterKeys[pressed] ?? pressed)
  })
  usePaste((text) => keys.paste(text))
  usePollServerState()
  useGlobalKeys()
  const applications = usePolledApplications()
  const isTooSmall = columns < widthMin || rows < heightMin
  return (
    <ApplicationsContext value={applications}>
      {isTooSmall && <TooSmall columns={columns} rows={rows} />}
      {/* Hidden, not unmounted, so that typed text and scroll positions survive. */}
      <Box display={isTooSmall ? 'none' : 'flex'}>
        <Frame columns={Math.max(columns, widthMin)} rows={Math.max(rows, heightMin)} />
      </Box>
    </ApplicationsContext>
  )
}

/**
 * Named keys within a text of several keys, which arrive as the characters that the terminal sends for them.
 */
const characterKeys: Partial<Record<string, string>> = {
  '\r': 'enter',
  '\t': 'tab',
  '\u007f': 'backspace',
  '\u0015': 'ctrl-u',
  '\u0017': 'ctrl-w',
}

function useGlobalKeys() {
  const { keys, shell, go, openDialog, quit, refresh, crash, context } = useConsole()
  const { suspendTerminal } = useApp()
  const { isPaused, isUnmasked, onlyEnvironment } = useShell()
  useKeys('screens', Object.fromEntries(digitScreens.map((name) => [name, () => go(name)])))
  const move = (offset: number) => {
    const index = screenNames.indexOf(shell.get().screen) + offset
    const name = screenNames.at(index % screenNames.length)
    if (name !== undefined) go(name)
  }
  useKeys('move', { next: () => move(1), previous: () => move(-1) })
  useKeys('everywhere', {
    palette: () => openDialog({ kind: 'palette', bindings: keys.activeBindings() }),
    find: () => go('otp', { isSearching: true }),
    environment: {
      run: () =>
        shell.set((previous) => ({
          ...previous,
          onlyEnvironment: nextEnvironment(previous.onlyEnvironment),
        })),
      label: environmentLabels[onlyEnvironment ?? 'both'],
    },
    refresh,
    pause: {
      run: () => shell.set((previous) => ({ ...previous, isPaused: !previous.isPaused })),
      label: isPaused ? 'resume' : 'pause',
    },
    unmask: {
      run: () => shell.set((previous) => ({ ...previous, isUnmasked: !previous.isUnmasked })),
      label: isUnmasked ? 'mask' : 'phones',
    },
    suspend: () => void suspendTerminal(() => suspendProcess(context.io)).catch(crash),
    help: () => shell.set((previous) => ({ ...previous, help: keys.activeBindings() })),
    quit: () => quit(exitCodes.done),
  })
}

/** Labels of `E`, by the environment that is shown now. */
const environmentLabels = { both: 'only live', live: 'only test', test: 'live and test' } as const

const nextEnvironment = (current: Environment | null): Environment | null =>
  current === null ? 'live' : current === 'live' ? 'test' : null

/**
 * Suspends the process group as Ctrl-Z does in other programs; the shell's `fg` resumes it. In an orphaned process group
 * the system ignores SIGTSTP, and the console goes on after a short pause.
 */
async function suspendProcess({ sleep }: Console['context']['io']) {
  // Ink has just written the sequences that restore the terminal; they must reach it before the process stops.
  await sleep(10)
  process.kill(0, 'SIGTSTP')
  // The signal may arrive a little later; ink takes the terminal back when this returns.
  await sleep(50)
}

function TooSmall({ columns, rows }: { columns: number; rows: number }) {
  const { theme, quit } = useConsole()
  // Typing into a hidden screen is blocked.
  useKeys('tooSmall', { quit: () => quit(exitCodes.done) }, { isModal: true })
  const lines: Line[] = [
    theme.status('warning', 'terminal too small'),
    `It is ${columns}x${rows}; at least ${widthMin}x${heightMin} is needed.`,
    'q quits',
  ]
  return <Lines lines={lines} width={columns} height={rows} />
}

/** Lines around the screen: two of header, the rule, the status line and the footer. */
const chromeHeight = 5

function Frame({ columns: width, rows }: { columns: number; rows: number }) {
  const { theme } = useConsole()
  const { screen, visit, target, dialog, help, dialogNumber, breadcrumbs, toast } = useShell()
  const isCompact = width < 80 || rows < 24
  const height = rows - chromeHeight
  const currentScreen = screens[screen]
  const path = [currentScreen.title, ...breadcrumbs]
  const separator = ` ${theme.symbols.breadcrumbSeparator} `
  const title: Line = [
    ...path.slice(0, -1).map((segment) => segment + separator),
    { text: path.at(-1) ?? '', paint: theme.paint.bold },
  ]
  return (
    <Box flexDirection="column" width={width} height={rows}>
      <Header screens={screens} width={width} />
      <Rule width={width} title={help === null ? title : 'Keys'} />
      <Box width={width} height={height} flexShrink={0} overflow="hidden">
        {help !== null && <Help screen={currentScreen} bindings={help} width={width} height={height} />}
        <Box display={help === null ? 'flex' : 'none'}>
          <currentScreen.View
            key={`${screen} ${visit}`}
            width={width}
            height={height}
            isCompact={isCompact}
            target={target}
          />
        </Box>
        {dialog !== null && <DialogView key={dialogNumber} dialog={dialog} width={width} height={height} />}
      </Box>
      {toast === null ? (
        <StatusLine width={width} />
      ) : (
        <Lines lines={[[' ', theme.status(toast.tone, toast.text)]]} width={width} />
      )}
      <Footer width={width} />
    </Box>
  )
}

function DialogView({ dialog, ...size }: { dialog: Dialog; width: number; height: number }) {
  const { shell } = useConsole()
  const close = () => shell.set((previous) => ({ ...previous, dialog: null }))
  switch (dialog.kind) {
    case 'confirm':
      return <ConfirmDialog dialog={dialog} {...size} />
    case 'form':
      return <FormDialog dialog={dialog} {...size} />
    case 'pick':
      return <PickBox {...dialog} {...size} close={close} />
    case 'palette':
      return <Palette {...dialog} {...size} screens={screens} close={close} />
  }
}

/**
 * Shows when the data was last updated, and the error that prevents it. An unreachable server is shown in the header, but
 * not an unreachable identity provider.
 */
function StatusLine({ width }: { width: number }) {
  const { listPosition, problems, theme } = useConsole()
  const age = useAge()
  const position = useStore(listPosition)
  const errors = [...useStore(problems).values()]
  const problem = errors.find((error) => !isRetryable(error) || error.code === 'PROVIDER_UNREACHABLE')
  if (problem !== undefined) {
    const { message, hints } = problem
    const hint = hints.at(-1)
    const both = hint === undefined ? message : `${message} ${hint}`
    const toLine = (text: string): Line => [' ', theme.status('bad', text)]
    // If both do not fit, the hint is more useful than the message, and a truncated command is useless.
    const texts = hint === undefined ? [message] : [both, hint, message]
    const room = width - displayWidth(age)
    const fitting = texts.map(toLine).find((line) => displayWidth(line) <= room)
    const line = fitting ? justify(fitting, age, width) : toLine(both)
    return <Lines lines={[line]} width={width} />
  }
  if (errors.some(({ status }) => status === 429)) {
    const text = 'The server limits calls per minute; updates continue by themselves.'
    return <Lines lines={[justify([' ', theme.status('warning', text)], age, width)]} width={width} />
  }
  return (
    <Lines lines={[justify([' ', { text: position, paint: theme.paint.dim }], age, width)]} width={width} />
  )
}

/** Returns how old the data on the screen is; as a time of day if newer data is missing. */
function useAge(): Span {
  const { answeredAt, staleSince, theme } = useConsole()
  const { server, isPaused } = useShell()
  const nowMs = useNow()
  // Read without a subscription: the clock renders this every second, and most responses change nothing else.
  const updatedAtMs = answeredAt.get()
  if (updatedAtMs === 0) return { text: '', paint: theme.paint.dim }
  const oldestMs = Math.min(updatedAtMs, ...staleSince.get().values())
  const isOld = oldestMs < updatedAtMs || server === 'unreachable' || isPaused
  return isOld
    ? { text: `as of ${clockText(oldestMs)} `, paint: theme.paint.yellow }
    : {
        text: `updated ${relativeTime(new Date(updatedAtMs).toISOString(), nowMs)} `,
        paint: theme.paint.dim,
      }
}
