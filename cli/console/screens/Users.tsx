import { CliError, exitCodes } from '../../terminal/errors.ts'
import type { User } from '../../client/resources.ts'
import { recentTime } from '../../terminal/text.ts'
import type { Column } from '../columns.ts'
import { ListTable } from '../components/ListTable.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { useConsole } from '../console-context.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useNow } from '../hooks/use-now.ts'
import { usePersistentState } from '../hooks/use-persistent-state.ts'
import { usePolled } from '../hooks/use-polled.ts'
import { usePhoneKeys } from './use-phone-keys.ts'
import { useOnlyEnvironment, usePhoneFormatter } from '../hooks/use-shell.ts'
import { environmentSpan } from '../lines/application.ts'
import { parseRequestSearch } from '../request-search.ts'
import type { Screen, ScreenProps } from '../screen.ts'

/** Screen with the phone numbers that were verified, newest first. */
export const usersScreen: Screen = {
  title: 'Users',
  commands: ['otpd user list', 'otpd user get PHONE', 'otpd user unlock PHONE', 'otpd user erase PHONE'],
  View: UsersView,
}

function UsersView({ width, height }: ScreenProps) {
  const { api, theme, copy, findRequests } = useConsole()
  const { applicationName } = useApplications()
  const formatPhone = usePhoneFormatter()
  const nowMs = useNow()
  const environment = useOnlyEnvironment()
  const [searchText, setSearchText] = usePersistentState('users search', '')
  const search = parseRequestSearch(searchText, [])
  const phone = search?.kind === 'phone' ? search.phone : null
  const digits = search?.kind === 'digits' ? search.phone : undefined
  const get = async (phoneNumber: string) => {
    try {
      const call = { params: { phoneNumber }, query: { environment } }
      return [(await api.asDeveloper('GET', '/v1/users/:phoneNumber', call)).data]
    } catch (error) {
      if (error instanceof CliError && error.exitCode === exitCodes.notFound) return []
      throw error
    }
  }
  const load = async () => {
    if (phone !== null) return await get(phone)
    const found = search?.kind === 'digits' && search.whole !== undefined ? await get(search.whole) : []
    if (found.length > 0) return found
    const query = { limit: '200', environment, phone: digits }
    return (await api.asDeveloper('GET', '/v1/users', { query })).data
  }
  const users = usePolled(`users ${environment} ${phone ?? digits}`, load)
  const list = useList({
    name: 'users',
    rows: users.data ?? [],
    height: height - 1,
    getRowId: ({ id }) => id,
    getFilterText: (user) =>
      [user.phone, user.country, user.id, ...user.applications.map(applicationName)].join(' '),
    onFilter: setSearchText,
    isServerFiltered: phone !== null || digits !== undefined,
  })
  const { selected } = list
  useKeys('users', {
    ...usePhoneKeys(selected?.phone),
    open: selected && (() => findRequests(selected.phone)),
    copy: selected && (() => copy(selected.id, 'user id')),
  })
  if (users.data === undefined) return <LoadingOrError polled={users} width={width} height={height} />
  const emptyText = phone !== null ? noUser : digits === undefined ? empty : noUserEndsWith(digits)
  const columns: Column<User>[] = [
    { title: 'PHONE', width: 16, cell: (user) => formatPhone(user.phone) },
    { title: 'LAST', width: 11, cell: ({ lastVerifiedAt }) => recentTime(lastVerifiedAt, nowMs) },
    { title: 'VERIFIED', width: 8, align: 'right', cell: (user) => String(user.verificationCount) },
    { title: 'ENV', width: 4, cell: (user) => environmentSpan(user.environment, theme) },
    { title: 'COUNTRY', width: 7, dropPriority: 2, cell: ({ country }) => country ?? '-' },
    {
      title: 'APPS',
      width: 10,
      grow: 1,
      maxWidth: 60,
      dropPriority: 1,
      cell: (user) => user.applications.map(applicationName).join(', '),
    },
    {
      title: 'FIRST',
      width: 11,
      dropPriority: 4,
      cell: ({ firstVerifiedAt }) => recentTime(firstVerifiedAt, nowMs),
    },
    { title: 'ID', width: 30, dropPriority: 3, cell: ({ id }) => id },
  ]
  return <ListTable list={list} columns={columns} width={width} empty={emptyText} noMatch={noMatch} />
}

const noMatch =
  'None of the newest 200 users matches. A number, or its last four or more digits, is looked for in more.'

const noUser = ['No user has this number. Without a country code, leave out the +, or type the last digits.']

const noUserEndsWith = (digits: string) => [
  `None of the newest 1,000 users has a number that ends with ${digits}. A whole number is looked for among all.`,
]

const empty = ['No verified phone numbers yet. A number appears here once its first code is verified.']
