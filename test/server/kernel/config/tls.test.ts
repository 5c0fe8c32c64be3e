import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../../../server/start/config.ts'

function complaints(toml: string): string[] {
  try {
    loadConfig({ file: 'c.toml', env: {}, readFile: () => Buffer.from(toml) })
    return []
  } catch (error) {
    return (error as Error).message.split('\n')
  }
}

describe('TLS without a certificate', () => {
  it.each(['tls', 'https'])('cannot be listened to: listen.%s', (key) => {
    expect(complaints(`[listen]\n${key} = "127.0.0.1:0"`)).toEqual([
      `c.toml:2: \`listen.${key}\`: needs a certificate: name \`tls.cert\` and \`tls.key\`, or leave this key out`,
    ])
    expect(complaints(`[listen]\n${key} = "127.0.0.1:0"\n[tls]\ncert = "a"\nkey = "b"`)).toEqual([])
  })

  it.each([
    ['cert = "a"', ['c.toml:2: `tls.key`: is missing: `tls.cert` needs it']],
    ['key = "a"', ['c.toml:2: `tls.cert`: is missing: `tls.key` needs it']],
    ['cert = "a"\nkey = "b"\nclient_ca = "c"\nclient_revoked = "d"', []],
    [
      'cert = "a"\nkey = "b"\nclient_revoked = "d"',
      ['c.toml:4: `tls.client_revoked`: says nothing without `tls.client_ca`: no client certificate is taken'],
    ],
  ])('is half a configuration: %j', (section, expected) => {
    expect(complaints(`[tls]\n${section}`)).toEqual(expected)
  })
})
