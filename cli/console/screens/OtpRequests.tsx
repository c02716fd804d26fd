import { Box } from 'ink'
import { otpStatuses, type OtpStatus } from '../../../src/shared/otp-values.ts'
import { routeText } from '../../client/log-lines.ts'
import type { Api } from '../../client/api.ts'
import type { OtpRequest } from '../../client/resources.ts'
import { buildPath, type Call } from '../../client/routes.ts'
import { CliError } from '../../terminal/errors.ts'
import { recentTime } from '../../terminal/text.ts'
import type { Column } from '../columns.ts'
import { FilterLine } from '../components/FilterLine.tsx'
import { ListTable } from '../components/ListTable.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { Timeline } from '../components/RequestView.tsx'
import { Rule } from '../components/Rule.tsx'
import { useConsole } from '../console-context.ts'
import { useApplicationCalls } from '../hooks/use-application-calls.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useNow } from '../hooks/use-now.ts'
import { usePersistentState } from '../hooks/use-persistent-state.ts'
import { usePolled } from '../hooks/use-polled.ts'
import { useOnlyEnvironment, usePhoneFormatter } from '../hooks/use-shell.ts'
import { expiryText } from '../lines/otp.ts'
import {
  parseRequestSearch,
  requestListName,
  requestSearchName,
  type RequestSearch,
} from '../request-search.ts'
import type { ScreenProps } from '../screen.ts'
import { statusSpan } from '../theme.ts'
import { appFilterPicker, appPicker } from './app-picker.ts'
import { sendDialog } from './otp-dialogs.ts'
import { usePhoneKeys } from './use-phone-keys.ts'

const newestMax = 200

/** List of the newest requests, optionally of one application, one status, or one phone number. */
export function OtpRequests({ width, height, target, open }: ScreenProps & { open(id: string): void }) {
  const console = useConsole()
  const { api, theme, openDialog, copy } = console
  const formatPhone = usePhoneFormatter()
  const nowMs = useNow()
  const environment = useOnlyEnvironment()
  const { data: loadedApplications, applicationName, applicationCell } = useApplications()
  const applications = loadedApplications ?? []
  const [pickedApp, setPickedApp] = usePersistentState<string | null>('otp app', null)
  const [pickedStatus, setPickedStatus] = usePersistentState<OtpStatus | null>('otp status', null)
  const [searchText, setSearchText] = usePersistentState(requestSearchName, '')
  const search = parseRequestSearch(searchText, applications)
  const appId = search?.kind === 'app' ? search.appId : pickedApp
  const status = search?.kind === 'status' ? search.status : pickedStatus
  const phone = search?.kind === 'phone' || search?.kind === 'digits' ? search.phone : null
  const query = { limit: String(newestMax), environment, appId, status, phone }
  const whole = search?.kind === 'digits' ? search.whole : undefined
  const requests = usePolled(buildPath('/v1/otp', { query }), () => loadRequests(api, query, whole))
  const rows = requests.data ?? []
  // A search for a number asks what happened to its codes, so the timeline is shown with it.
  const listHeight = Math.min(rows.length + 3, Math.floor(height / 2))
  const detailHeight = phone !== null && rows.length > 0 ? height - 1 - listHeight : 0
  const list = useList({
    name: requestListName,
    rows,
    height: height - 2 - detailHeight,
    getRowId: ({ id }) => id,
    getFilterText: (request) =>
      `${request.phone} ${request.id} ${request.status} ${applicationName(request.appId)}`,
    isFilteringAtStart: target?.isSearching === true,
    isServerFiltered: search !== null,
    onFilter(text) {
      setSearchText(text)
      const typed = parseRequestSearch(text, applications)
      if (typed?.kind === 'id') open(typed.id)
    },
  })
  const { selected } = list
  const callAsApplication = useApplicationCalls()
  const sendAs = (app: (typeof applications)[number]) =>
    callAsApplication(app, (credentials) =>
      openDialog(sendDialog(console, app, credentials, ({ requestId }) => open(requestId))),
    )
  const senders = applications.filter(
    (app) => (appId === null || app.id === appId) && (environment ?? app.environment) === app.environment,
  )
  const [sender] = senders
  useKeys('otp', {
    ...usePhoneKeys(selected?.phone),
    open: selected && (() => open(selected.id)),
    app:
      applications.length === 0 ? undefined : () => openDialog(appFilterPicker(applications, setPickedApp)),
    status: () => setPickedStatus(nextStatus(pickedStatus)),
    send:
      sender === undefined
        ? loadedApplications && { unavailable: noSender(applications.length > 0) }
        : senders.length === 1
          ? () => sendAs(sender)
          : () => openDialog(appPicker('Send a code as', senders, sendAs)),
    copy: selected && { run: () => copy(selected.id, 'request id'), label: 'copy id' },
  })

  const isUnfiltered = appId === null && status === null && phone === null
  const columns: Column<OtpRequest>[] = [
    { title: 'SENT', width: 11, cell: ({ createdAt }) => recentTime(createdAt, nowMs) },
    { title: 'PHONE', width: 16, cell: (request) => formatPhone(request.phone) },
    { title: 'STATUS', width: 10, cell: (request) => statusSpan(request, theme) },
    { title: 'TRIES', width: 5, cell: ({ attempts, maxAttempts }) => `${attempts}/${maxAttempts}` },
    { title: 'APP', width: 8, grow: 1, maxWidth: 48, dropPriority: 1, cell: applicationCell },
    { title: 'EXPIRES', width: 13, dropPriority: 2, cell: (request) => expiryText(request, nowMs) },
    { title: 'CHANNEL', width: 10, grow: 1, maxWidth: 20, dropPriority: 4, cell: channelText },
    { title: 'REQUEST', width: 30, dropPriority: 3, cell: ({ id }) => id },
  ]
  const filters = `app: ${appId === null ? 'all' : applicationName(appId)}   status: ${status ?? 'all'}`
  const isFull = rows.length === newestMax
  const isEnd = search?.kind === 'digits' && rows[0]?.phone !== `+${search.phone}`
  const remark = isEnd ? 'in the newest 500' : isFull ? `the newest ${newestMax}` : ''
  return (
    <Box flexDirection="column" width={width} height={height}>
      {requests.data === undefined ? (
        <>
          <LoadingOrError polled={requests} width={width} height={height - (list.hasFilter ? 2 : 1)} />
          {/* Takes what is typed right after `/`, also on another screen, where the requests are not loaded yet. */}
          {list.hasFilter && <FilterLine list={list} width={width} />}
        </>
      ) : (
        <ListTable
          list={list}
          columns={columns}
          width={width}
          empty={isUnfiltered ? empty : emptyFiltered(search)}
        />
      )}
      {detailHeight > 0 && selected !== null && (
        <Timeline key={selected.id} request={selected} width={width} height={detailHeight} />
      )}
      <Rule
        width={width}
        title={{ text: filters, paint: isUnfiltered ? theme.paint.dim : theme.paint.cyan }}
        remark={remark}
      />
    </Box>
  )
}

type RequestQuery = NonNullable<Call<'GET', '/v1/otp'>['query']>

/** Loads requests. @param whole number whose requests are loaded instead, if it has any */
async function loadRequests(api: Api, query: RequestQuery, whole: string | undefined): Promise<OtpRequest[]> {
  const list = async (phone: string | null | undefined) =>
    (await api.asDeveloper('GET', '/v1/otp', { query: { ...query, phone } })).data
  if (whole === undefined) return await list(query.phone)
  try {
    const found = await list(whole)
    if (found.length > 0) return found
  } catch (error) {
    // The digits are no whole number.
    if (!(error instanceof CliError) || error.code !== 'INVALID_PHONE_NUMBER') throw error
  }
  return await list(query.phone)
}

const noSender = (isFiltered: boolean) =>
  isFiltered ? 'no application matches the filters' : 'there is no application yet'

const channelText = ({ channel, provider }: OtpRequest) =>
  provider === 'inbox' ? provider : routeText(channel, provider)

/** Returns the status after `current`; null, which is all, after the last one. */
const nextStatus = (current: OtpStatus | null): OtpStatus | null =>
  current === null ? (otpStatuses[0] ?? null) : (otpStatuses[otpStatuses.indexOf(current) + 1] ?? null)

const empty = ['No codes yet. Press S to send one; or:', '', '  otpd otp send PHONE --env-file FILE']

const emptyFiltered = (search: RequestSearch | null) =>
  search?.kind === 'digits'
    ? [
        `None of the newest 500 codes went to a number that ends with ${search.phone}.`,
        'Type the whole number, with + and its country code, to search all.',
      ]
    : search?.kind === 'phone'
      ? [
          `No code was ever sent to ${search.phone}, as far as it is kept.`,
          'Press esc to see all requests. Without a country code, leave out the +, or type the last digits.',
        ]
      : ['No matching codes. Press a or s to change the filter.']
