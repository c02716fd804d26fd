import { describe, expect, test } from 'bun:test'
import { parseAuditSearch, parseLogSearch } from '../../../cli/console/entry-search.ts'

const id = `app_${'0'.repeat(26)}`
const applications = [{ id, name: 'web' }]

describe('the search of the log', () => {
  const request = `otp_${'1'.repeat(26)}`
  test.each([
    ['+44 7700 900-123', { phoneEnd: '+447700900123' }],
    ['0044 7700 900123', { phoneEnd: '+447700900123' }],
    ['0123', { phoneEnd: '0123' }],
    ['0012', { phoneEnd: '0012' }],
    ['001234', { phoneEnd: '001234' }],
    ['07700 900123', { phoneEnd: '7700900123' }],
    ['7700 900123', { phoneEnd: '7700900123' }],
    ['447700900123', { phoneEnd: '447700900123' }],
    ['otp.verified', { type: 'otp.verified' }],
    ['Delivery', { type: 'otp.delivered,otp.undelivered' }],
    ['web', { appId: id }],
    [request, { requestId: request }],
  ])('asks the server for %p', (text, query) => {
    expect(parseLogSearch(text, applications)).toEqual(query)
  })

  test.each(['', '12', 'all', 'max attempts', 'we', 'constructor', '__proto__'])(
    'searches the rows for %p',
    (text) => {
      expect(parseLogSearch(text, applications)).toBeNull()
    },
  )
})

describe('the search of the audit trail', () => {
  test('asks the server for an action, an application and the id of a resource', () => {
    expect(parseAuditSearch('Login.failed', applications)).toEqual({ action: 'login.failed' })
    expect(parseAuditSearch('web', applications)).toEqual({ targetId: id })
    expect(parseAuditSearch(id, applications)).toEqual({ targetId: id })
  })

  test.each(['', 'login', '127.0.0.1'])('searches the rows for %p', (text) => {
    expect(parseAuditSearch(text, applications)).toBeNull()
  })
})
