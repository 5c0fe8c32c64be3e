/** What of a `prometheus.yml` is taken, and what is refused by its name. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { targetsOf } from '../../../../../server/wings/prometheus/scrape/job.ts'
import { readPrometheusYml } from '../../../../../server/wings/prometheus/scrape/prometheus-yml.ts'

let directory: string
let path: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'prometheus-yml-'))
  path = join(directory, 'prometheus.yml')
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

async function jobsOf(text: string) {
  writeFileSync(path, text)
  return readPrometheusYml(path, 'north')
}
const problemsOf = (text: string): Promise<string[]> =>
  jobsOf(text).then(
    () => [],
    (error: Error) => error.message.replaceAll(path, 'p.yml').split('\n'),
  )

it('is taken as Prometheus takes it', async () => {
  const jobs = await jobsOf(`global:
  scrape_interval: 1m30s
  evaluation_interval: 30s
  sample_limit: 1500
  external_labels: { monitor: codelab }
rule_files: ["first.rules"]
alerting:
  alertmanagers:
    - static_configs: [{ targets: ["localhost:9093"] }]
scrape_configs:
  - job_name: prometheus
    honor_labels: true
    honor_timestamps: false
    scrape_timeout: 5s
    scheme: https
    body_size_limit: 10MB
    file_sd_configs:
      - files: [foo/*.slow.json, /single/file.yml]
        refresh_interval: 10m
      - files: [bar/*.yaml]
    static_configs:
      - targets: ["localhost:9090", "localhost:9191"]
        labels: { my: label, number: 1 }
    relabel_configs:
      - source_labels: [job, __meta_dns_name]
        regex: (.*)some-[regex]
        target_label: job
        replacement: foo-$1
      - source_labels: [abc]
        target_label: cde
      - regex:
        replacement: static
        target_label: abc
      - source_labels: [__address__]
        modulus: 8
        target_label: __tmp_hash
        action: HashMod
    metric_relabel_configs:
      - { source_labels: [__name__], regex: expensive_metric.*, action: drop }
    authorization: { credentials_file: valid_token_file }
    tls_config: { ca_file: ca.pem, cert_file: /c.pem, key_file: k.pem, server_name: n.example }
  - job_name: "0123"
    follow_redirects: false
    params: { module: [a, b] }
    metrics_path: /federate
    basic_auth: { username: admin, password_file: secret }
    static_configs: [{ targets: [localhost] }]
    scrape_interval: 5s
`)
  const [job, other] = jobs
  expect(job).toEqual({
    name: 'prometheus',
    job: 'prometheus',
    url: undefined,
    tenant: 'north',
    groups: [{ targets: ['localhost:9090', 'localhost:9191'], labels: { my: 'label', number: '1' } }],
    files: [
      { paths: [join(directory, 'foo/*.slow.json'), '/single/file.yml'], refreshMs: 600_000, labels: {} },
      { paths: [join(directory, 'bar/*.yaml')], refreshMs: 300_000, labels: {} },
    ],
    scheme: 'https',
    metricsPath: '/metrics',
    params: {},
    relabel: [
      expect.objectContaining({ sourceLabels: ['job', '__meta_dns_name'], regex: '(.*)some-[regex]', separator: ';' }),
      expect.objectContaining({ sourceLabels: ['abc'], targetLabel: 'cde', regex: '(.*)', replacement: '$1' }),
      expect.objectContaining({ regex: '', replacement: 'static', action: 'replace' }),
      expect.objectContaining({ action: 'hashmod', modulus: 8, targetLabel: '__tmp_hash' }),
    ],
    metricRelabel: [expect.objectContaining({ action: 'drop', regex: 'expensive_metric.*' })],
    intervalMs: 90_000,
    timeoutMs: 5_000,
    honorsLabels: true,
    honorsTimestamps: false,
    maxSamples: 100_000,
    sampleLimit: 1_500,
    maxBytes: 10 * 1_048_576,
    tokenFile: join(directory, 'valid_token_file'),
    username: '',
    passwordFile: undefined,
    ca: join(directory, 'ca.pem'),
    cert: '/c.pem',
    key: join(directory, 'k.pem'),
    serverName: 'n.example',
  })
  expect(other).toMatchObject({ timeoutMs: 5_000, username: 'admin', passwordFile: join(directory, 'secret') })
  expect(jobs.map((one) => targetsOf(one).specs.map(({ url }) => url))).toEqual([
    ['https://localhost:9090/metrics', 'https://localhost:9191/metrics'],
    ['http://localhost/federate?module=a&module=b'],
  ])
})

const HEAD = 'scrape_configs:\n  - job_name: a\n'
describe('a file is refused', () => {
  it.each<[string, string[]]>([
    [
      `${HEAD}    consul_sd_configs:\n      - server: localhost:1234\n    proxy_url: http://p\n`,
      ['p.yml:3: `consul_sd_configs` is not supported', 'p.yml:5: `proxy_url` is not supported'],
    ],
    [
      `${HEAD}    basic_auth:\n      username: u\n      password: geheim\n`,
      [
        'p.yml:5: `password` is not supported: write it into a file, and name that by `password_file`',
        'p.yml:3: `username` and `password_file` are needed together',
      ],
    ],
    [
      `${HEAD}    tls_config:\n      insecure_skip_verify: true\n`,
      ['p.yml:4: `insecure_skip_verify: true` is not supported: name the authority by `ca_file`'],
    ],
    [`${HEAD}    follow_redirects: true\n`, ['p.yml:3: `follow_redirects: true` is not supported']],
    [`${HEAD}    enable_compression: no\n`, ['p.yml:3: `enable_compression`: expected true or false, found "no"']],
    [`${HEAD}    authorization: {type: Digest}\n`, ['p.yml:3: the type "Digest" is not supported']],
    [`${HEAD}    scrape_timeout: 2m\n`, ['p.yml:3: `scrape_timeout` is longer than `scrape_interval`']],
    [`${HEAD}    scrape_interval: 5\n`, ['p.yml:3: `scrape_interval`: expected a duration like "1m30s", found "5"']],
    [
      `${HEAD}    static_configs:\n      - targets:\n          - localhost:1\n          - http://localhost:2\n`,
      ['p.yml:6: "http://localhost:2" is no address like "n1.example:9100"'],
    ],
    [
      `${HEAD}    relabel_configs:\n      - action: keep\n      - action: hashmod\n        target_label: b\n`,
      ['p.yml:5: `hashmod` needs a `modulus` of at least 1'],
    ],
    [
      `${HEAD}    relabel_configs:\n      - action: nothing\n`,
      [
        'p.yml:4: `action`: expected one of replace, keep, drop, keepequal, dropequal, hashmod, labelmap, labeldrop, ' +
          'labelkeep, lowercase, uppercase, found "nothing"',
        'p.yml:4: `replace` needs `target_label`',
      ],
    ],
    [
      `${HEAD}    file_sd_configs:\n      - files: [a/*/b.json]\n`,
      ['p.yml:4: "a/*/b.json" is no path for `file_sd_configs`'],
    ],
    [`${HEAD}  - job_name: a\n`, ['p.yml:3: two jobs are called "a"']],
    ['scrape_configs:\n  - honor_labels: true\n', ['p.yml:2: it needs a `job_name`']],
    ['scrape_config_files: [a.yml]\n', ['p.yml:1: `scrape_config_files` is not supported']],
    ['global:\n  scrape_protocols: [PrometheusProto]\n', ['p.yml:2: `scrape_protocols` is not supported']],
    [
      `${HEAD}    static_configs: [{ targets: ["http://u:geheim@n:1", "a\\n${'b'.repeat(200)}"] }]\n`,
      [
        'p.yml:3: "…@n:1" is no address like "n1.example:9100"',
        `p.yml:3: "a ${'b'.repeat(98)}" is no address like "n1.example:9100"`,
      ],
    ],
    ['global: {}\nglobal: {}\n', ['p.yml:2: not YAML: the key "global" stands twice']],
    ['- a\n', ['p.yml: it is no table']],
    ['scrape_configs: [\n', ['p.yml:2: not YAML: ']],
    ['a: &a\n  b: *c\n', ['p.yml']],
  ])('%j', async (text, problems) => {
    expect(await problemsOf(text)).toEqual(problems.map((problem) => expect.stringContaining(problem)))
  })

  it('with a line for what an alias stands for', async () => {
    const text = `scrape_configs:\n  - &a\n    job_name: a\n    http_headers: {}\n  - <<: *a\n    job_name: b\n`
    expect(await problemsOf(text)).toEqual([
      'p.yml:4: `http_headers` is not supported',
      expect.stringMatching(/^p[.]yml:\d: `http_headers` is not supported$/),
    ])
  })

  it('if it is no file, or too long', async () => {
    const problem = 'p.yml: cannot be read: it has more than 1048576 bytes'
    expect(await problemsOf('#'.repeat(1_048_577))).toEqual([problem])
    await expect(readPrometheusYml(directory, 'north')).rejects.toThrow('cannot be read: it is no file')
  })

  it('if it is not there', async () => {
    await expect(readPrometheusYml(join(directory, 'none.yml'), 'north')).rejects.toThrow('none.yml: cannot be read')
  })
})
