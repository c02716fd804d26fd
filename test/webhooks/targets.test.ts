import { describe, expect, test } from 'bun:test'
import { createTargetGuard } from '../../src/webhooks/targets.ts'

const strictGuard = createTargetGuard({ hosts: [], cidrs: [] })
const lenientGuard = createTargetGuard({ hosts: ['hooks.internal'], cidrs: ['10.0.0.0/8', 'fd00::/8'] })

describe('a URL to register', () => {
  test.each([
    'https://example.com/hook?a=1',
    'https://example.com:8443',
    'https://bücher.example/',
    'https://8.8.8.8/',
    'https://[2606:4700::1111]/',
    'https://internal.example.com/',
    'https://mylocalhost.com/',
  ])('%s is accepted', (url) => {
    expect(strictGuard.findFault(url)).toBeUndefined()
  })

  test.each([
    ['example.com/hook', 'URL'],
    ['', 'URL'],
    ['https://', 'URL'],
    ['https://exa mple.com/', 'URL'],
    ['https://example.com\n/', 'URL'],
    ['https:\\\\example.com/', 'URL'],
    ['https://[fe80::1%25eth0]/', 'URL'],
    ['http://example.com/', 'https'],
    ['ftp://example.com/', 'https'],
    ['javascript:alert(1)', 'https'],
    ['https:example.com', 'https'],
    ['https:///example.com', 'https'],
    ['https://user@example.com/', 'user name'],
    ['https://user:secret@example.com/', 'user name'],
    ['https://@example.com/', 'user name'],
    ['https://example.com/#part', 'fragment'],
    ['https://example.com/#', 'fragment'],
    ['https://127.0.0.1/', 'public'],
    ['https://10.1.2.3/', 'public'],
    ['https://localhost/', 'otpd webhook listen'],
    ['http://localhost:3000/hook', 'otpd webhook listen'],
    ['https://LOCALHOST./', 'OTPD_WEBHOOK_ALLOW'],
    ['https://shop.localhost/hook', 'public'],
    ['https://printer.local/', 'public'],
    ['https://hooks.internal/', 'public'],
    ['https://Metadata.Google.Internal/', 'public'],
    ['https://./', 'host name'],
    ['https://.', 'host name'],
    ['https://../', 'host name'],
    ['https://a..example.com/', 'host name'],
    ['https://.example.com/', 'host name'],
    ['https://example.com../', 'host name'],
  ])('%s is refused', (url, expectedReason) => {
    expect(strictGuard.findFault(url)).toContain(expectedReason)
  })

  test('may have an at sign after the host', () => {
    expect(strictGuard.findFault('https://example.com/@me?to=a@b')).toBeUndefined()
  })

  test.each([
    'http://hooks.internal/',
    'http://10.1.2.3/',
    'https://[fd00::1]/',
    'http://[::ffff:10.0.0.1]/',
  ])('%s is accepted if the operator allows it', (url) => {
    expect(strictGuard.findFault(url)).toBeDefined()
    expect(lenientGuard.findFault(url)).toBeUndefined()
  })

  test.each([
    'http://8.8.8.8/',
    'http://other.internal/',
    'https://192.168.0.1/',
    'http://a.hooks.internal/',
  ])('%s is refused although others are allowed', (url) => {
    expect(lenientGuard.findFault(url)).toBeDefined()
  })
})

describe('a port', () => {
  const allowed = [443, 80, 1024, 4318, 8080, 8443, 65_535]
  const refused = [1, 22, 25, 53, 79, 81, 110, 444, 465, 587, 993, 1023]
  const services = [2375, 2379, 3306, 5432, 5984, 6379, 8500, 9200, 10250, 11211, 27017]

  test.each(allowed)('%d is accepted', (port) => {
    expect(strictGuard.findFault(`https://example.com:${port}/`)).toBeUndefined()
    expect(strictGuard.allowsPort(new URL(`https://example.com:${port}/`))).toBe(true)
  })

  test('0 is refused, also of a target that the operator allows', () => {
    expect(strictGuard.findFault('https://example.com:0/')).toContain('port')
    expect(lenientGuard.findFault('http://10.1.2.3:0/')).toContain('port')
  })

  test.each([...refused, ...services])('%d is refused, unless the operator allows the target', (port) => {
    for (const host of ['example.com', '8.8.8.8', '[2606:4700::1111]']) {
      expect(strictGuard.findFault(`https://${host}:${port}/`)).toContain('port')
    }
    for (const host of ['hooks.internal', '10.1.2.3', '[fd00::1]']) {
      expect(lenientGuard.findFault(`http://${host}:${port}/`)).toBeUndefined()
    }
  })
})

describe('the metadata address of a cloud', () => {
  test.each([
    ['AWS, Azure, GCP, Oracle, IBM, Huawei, DigitalOcean, Hetzner', '169.254.169.254'],
    ['AWS over IPv6', 'fd00:ec2::254'],
    ['tasks of ECS', '169.254.170.2'],
    ['pods of EKS', '169.254.170.23'],
    ['pods of EKS over IPv6', 'fd00:ec2::23'],
    ['the time service of AWS', '169.254.169.123'],
    ['the platform of Azure', '168.63.129.16'],
    ['the platform of Azure, mapped', '::ffff:168.63.129.16'],
    ['GCP over IPv6', 'fd20:ce::254'],
    ['Alibaba', '100.100.100.200'],
    ['Oracle', '192.0.0.192'],
    ['Oracle over IPv6', 'fd00:c1::a9fe:a9fe'],
    ['Tencent', '169.254.0.23'],
    ['Scaleway', '169.254.42.42'],
    ['Scaleway over IPv6', 'fd00:42::42'],
  ])('of %s is refused: %s', (_, address) => {
    expect(strictGuard.allows('name', address)).toBe(false)
    const host = address.includes(':') ? `[${address}]` : address
    expect(strictGuard.findFault(`https://${host}/`)).toContain('public')
  })

  test('is refused in every spelling of a URL', () => {
    for (const host of [
      '2822734096',
      '0xa83f8110',
      '0250.077.0201.020',
      '168.63.33040',
      '[::ffff:a83f:8110]',
    ]) {
      expect(strictGuard.findFault(`https://${host}/`)).toContain('public')
    }
  })
})

describe('an address that a name resolves to', () => {
  // At least one address of every special range in the IANA registries, and the forms that embed an IPv4
  // address.
  test.each([
    '0.0.0.0',
    '0.1.2.3',
    '10.0.0.1',
    '100.64.0.1',
    '127.0.0.1',
    '127.255.255.254',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.1',
    '192.0.2.1',
    '192.88.99.1',
    '192.168.1.1',
    '198.18.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '239.255.255.255',
    '240.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::7f00:1',
    '::808:808',
    '::ffff:127.0.0.1',
    '::ffff:10.0.0.1',
    '::ffff:0:127.0.0.1',
    '64:ff9b::7f00:1',
    '64:ff9b::808:808',
    '64:ff9b:1::1',
    '100::1',
    '2001::1',
    '2001:2::1',
    '2001:20::1',
    '2001:db8::1',
    '2002:7f00:1::',
    '3fff::1',
    '5f00::1',
    'fc00::1',
    'fd12:3456::1',
    'fe80::1',
    'fe80::1%eth0',
    'fec0::1',
    'ff02::1',
    '1::1',
    '4000::1',
    'not an address',
    '',
  ])('is refused if it is not public: %s', (address) => {
    expect(strictGuard.allows('name', address)).toBe(false)
  })

  test('is accepted if it is public', () => {
    for (const address of ['8.8.8.8', '172.32.0.1', '2606:4700::1111', '::ffff:8.8.8.8']) {
      expect([address, strictGuard.allows('name', address)]).toEqual([address, true])
    }
  })

  test('is accepted if the operator allows the name or the address', () => {
    expect(lenientGuard.allows('hooks.internal', '192.168.0.1')).toBe(true)
    expect(lenientGuard.allows('name', '10.9.9.9')).toBe(true)
    expect(lenientGuard.allows('name', '::ffff:10.9.9.9')).toBe(true)
    expect(lenientGuard.allows('name', '192.168.0.1')).toBe(false)
  })
})
