/** What the tables `[[drain]]` may say, and what people read where they may not. */
import { describe, expect, it } from 'vitest'
import { ConfigError, loadConfig } from '../../../../server/start/config.ts'

const load = (toml: string) => loadConfig({ file: 'c.toml', env: {}, readFile: () => Buffer.from(toml) })

const TABLE = '[[drain]]\nname = "d"\nmetrics = ["gmetric.*"]\n'

describe('a drain', () => {
  it('has defaults for all but its name, its URL and its metrics', () => {
    const [drain] = load(`${TABLE}url = "Prometheus+https://host.example/api/v1/write?a=b"`).drain
    expect(drain).toMatchObject({
      name: 'd',
      url: {
        protocol: 'prometheus',
        href: 'https://host.example/api/v1/write?a=b',
        text: 'Prometheus+https://host.example/api/v1/write?a=b',
      },
      metrics: ['gmetric.*'],
      tenant: 'default',
      role: 'consumer',
      batchSize: 2_000,
      batchAgeMs: 1_000,
      timeoutMs: 30_000,
    })
  })

  it.each([
    ['url = "https://host/write"', /`\[\[drain\]\]` d: `url`: expected a URL like "prometheus\+https/],
    ['url = "otlp+http://user:hunter2@host/v1/metrics"', /without a user/],
    ['url = "otlp+http://host/"\ntoken_file = "t"', /in clear: use \+https/],
    ['url = "otlp+http://192.0.2.1/"\nusername = "u"\npassword_file = "p"', /in clear/],
    ['url = "otlp+https://host/"\ncert = "c"', /`cert` and `key` go together/],
    ['url = "otlp+https://host/"\nusername = "u"', /`username` and `password_file` go together/],
    ['url = "otlp+https://host/"\ntoken_file = "t"\nusername = "u"\npassword_file = "p"', /not both/],
    ['url = "otlp+https://host/"\nsecret_file = "s"', /`secret_file` goes with a `url` of json\+https or json\+http/],
    ['url = "webhook+https://host/"', /expected a URL like/],
    ['url = "otlp+https://host/"\nmetrics_like = "x"', /unknown key/],
  ])('%s is refused', (line, problem) => {
    const toml = TABLE + line
    expect(() => load(toml)).toThrow(ConfigError)
    expect(() => load(toml)).toThrow(problem)
    expect(() => load(toml)).not.toThrow(/hunter2/)
  })

  it('sends a token without TLS to this machine only', () => {
    for (const host of ['127.0.0.1', 'localhost', '[::1]']) {
      const [drain] = load(`${TABLE}url = "otlp+http://${host}:4318/v1/metrics"\ntoken_file = "/t"`).drain
      expect(drain?.tokenFile).toBe('/t')
    }
  })

  it('to a receiver of JSON is signed with secrets from a file, also without TLS', () => {
    const [drain] = load(`${TABLE}url = "json+http://host.example/values"\nsecret_file = "/s"`).drain
    expect(drain).toMatchObject({ secretFile: '/s', url: { protocol: 'json', href: 'http://host.example/values' } })
  })

  it('has a name of its own in its tenant', () => {
    const url = 'url = "otlp+http://host/"\n'
    expect(() => load(TABLE + url + TABLE + url)).toThrow(/two of the tenant default are called d/)
    expect(load(`${TABLE}${url}${TABLE}${url}tenant = "other"`).drain).toHaveLength(2)
  })

  it('of all tenants shares its name with none, and tells their series apart', () => {
    const url = 'url = "otlp+http://host/"\n'
    const all = `${TABLE}${url}tenant = "*"\ntenant_label = "tenant"\n`
    expect(load(all).drain).toMatchObject([{ tenant: '*', tenantLabel: 'tenant' }])
    expect(() => load(all + TABLE + url)).toThrow(/two are called d/)
    expect(() => load(TABLE + url + all)).toThrow(/two are called d/)
    expect(() => load(`${TABLE}${url}tenant = "*"`)).toThrow(/`tenant`: with "\*", `tenant_label` has to say/)
    expect(load(`${TABLE}url = "json+http://host/"\ntenant = "*"`).drain).toHaveLength(1)
  })
})
