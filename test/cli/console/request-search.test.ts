import { describe, expect, test } from 'bun:test'
import { parseRequestSearch, readPhone } from '../../../cli/console/request-search.ts'

const applications = [{ id: `app_${'0'.repeat(26)}`, name: 'web' }]
const parse = (text: string) => parseRequestSearch(text, applications)

describe('the search of the requests', () => {
  test.each([
    ['+447700900123', '+447700900123'],
    [' +44 7700 900-123 ', '+44 7700 900-123'],
    ['0044 7700 900123', '0044 7700 900123'],
    ['+1 (415) 555-0100', '+1 (415) 555-0100'],
  ])('asks the server for the phone number %s', (text, phone) => {
    expect(parse(text)).toEqual({ kind: 'phone', phone })
  })

  test.each([
    ['0123', '0123'],
    ['90 0123', '900123'],
    ['07700 900123', '07700900123'],
  ])('asks the server for numbers that end with %s', (text, phone) => {
    expect(parse(text)).toEqual({ kind: 'digits', phone })
  })

  test.each([
    ['447700900123', '447700900123', '+447700900123'],
    ['7700900123', '7700900123', '+7700900123'],
    ['770 090-0123', '7700900123', '+770 090-0123'],
  ])('asks the server for the end of a number, after the whole number, by %s', (text, phone, whole) => {
    expect(parse(text)).toEqual({ kind: 'digits', phone, whole })
  })

  test.each(['012', 'max attempts', '', 'otp_1', '+', '12:30'])('searches the rows for %p', (text) => {
    expect(parse(text)).toBeNull()
    expect(readPhone(text)).toBeNull()
  })

  test('asks the server for an id, a status and an application', () => {
    const id = `otp_${'1'.repeat(26)}`
    expect(parse(id)).toEqual({ kind: 'id', id })
    expect(parse('Pending')).toEqual({ kind: 'status', status: 'pending' })
    expect(parse('web')).toEqual({ kind: 'app', appId: `app_${'0'.repeat(26)}` })
  })
})
