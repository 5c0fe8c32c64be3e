/** Where a relative path starts: at the directory of the file, wherever the program is that reads it. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { findServer } from '../../../../cli/configuration.ts'
import { loadConfig } from '../../../../server/start/config.ts'
import { warnOfOtherData } from '../../../../server/start/first-run.ts'

const ELSEWHERE = '/etc/elsewhere'
const load = (text: string, env: NodeJS.ProcessEnv = {}) =>
  loadConfig({ file: `${ELSEWHERE}/c.toml`, env, readFile: () => new TextEncoder().encode(text) })

describe('a relative path of the file starts at its directory', () => {
  test('in sections', () => {
    const config = load(
      '[producer]\ndata_dir = "data"\n[tls]\ncert = "tls/server.pem"\nkey = "../server.key"\nclient_ca = "/srv/ca.pem"\n' +
        '[jwt]\nkeys = "keys.json"\nissuer = "i"\naudience = "a"\n[http]\npages = "./pages"\n[prometheus]\nscrape_config = "p.yml"\n',
    )
    expect(config.producer.dataDir).toBe('/etc/elsewhere/data')
    expect(config.tls).toMatchObject({
      cert: '/etc/elsewhere/tls/server.pem',
      key: '/etc/server.key',
      clientCa: '/srv/ca.pem',
    })
    expect(config.jwt.keys).toBe('/etc/elsewhere/keys.json')
    expect(config.http.pages).toBe('/etc/elsewhere/pages')
    expect(config.prometheus.scrapeConfig).toBe('/etc/elsewhere/p.yml')
  })

  test('in tables of lists, and in lists of sections', () => {
    const config = load(
      '[[drain]]\nname = "d"\nurl = "prometheus+https://p.example/w"\nmetrics = ["host.*"]\ntoken_file = "d.token"\nca = "ca.pem"\n' +
        '[[upstream]]\nname = "u"\nurl = "tls://u.example"\ntoken_file = "u.token"\n' +
        '[[scrape]]\nname = "s"\nurl = "https://s.example"\npassword_file = "s.secret"\nusername = "me"\n' +
        '[[mono.file]]\npath = "counters.mlpd"\nagent = "a"\n',
    )
    const text = JSON.stringify(config)
    for (const name of ['d.token', 'ca.pem', 'u.token', 's.secret', 'counters.mlpd']) {
      expect(text).toContain(`"/etc/elsewhere/${name}"`)
    }
  })

  test('and so does the default of `data_dir`', () => {
    expect(load('').producer.dataDir).toBe('/etc/elsewhere/data')
    expect(load('[log]\nlevel = "warn"').producer.dataDir).toBe('/etc/elsewhere/data')
  })
})

test('what is empty or wrong stays so, and is named as it stands in the file', () => {
  expect(load('[tls]\ncert = ""').tls.cert).toBeUndefined()
  expect(() => load('[producer]\ndata_dir = ""')).toThrow(
    'c.toml:2: `producer.data_dir`: expected a path, not empty, found ""',
  )
  expect(() => load('[producer]\ndata_dir = 7')).toThrow('found 7')
  expect(() => load('producer = 7')).toThrow('expected a section [producer]')
})

test('a path of the environment, and one without a file, start at the current directory', () => {
  expect(load('[producer]\ndata_dir = "a"', { CINNABAR_PRODUCER_DATA_DIR: 'b' }).producer.dataDir).toBe('b')
  expect(loadConfig({ env: {} }).producer.dataDir).toBe('./data')
})

describe('with files', () => {
  const directory = mkdtempSync(join(tmpdir(), 'cinnabar-paths-'))
  afterAll(() => rmSync(directory, { recursive: true }))
  const file = join(directory, 'c.toml')

  test.each(['', '[producer]\ndata_dir = "d"', '[producer]\ndata_dir = "/srv/d"'])(
    'commands find the same: %j',
    async (text) => {
      writeFileSync(file, text)
      const { producer } = loadConfig({ file, env: {} })
      expect(resolve((await findServer(file, {})).dataDir)).toBe(producer.dataDir)
      expect((await findServer(file, { CINNABAR_PRODUCER_DATA_DIR: 'x' })).dataDir).toBe('x')
    },
  )

  test('data where earlier versions looked, in the current directory, is pointed out', () => {
    const warnings: string[] = []
    const log = { warn: (...said: readonly unknown[]) => void warnings.push(String(said[1])) }
    const [current, before] = [process.cwd(), join(directory, 'before')]
    mkdirSync(join(before, 'd'), { recursive: true })
    writeFileSync(join(before, 'd', 'cinnabar.db'), '')
    process.chdir(before)
    try {
      warnOfOtherData({ dataDir: '/srv/d', configFile: file }, log, [])
      expect(warnings).toEqual([])
      warnOfOtherData({ dataDir: join(directory, 'd'), configFile: file }, log, [])
      expect(warnings).toEqual([expect.stringContaining(`start it with --data ${join(before, 'd')}`)])
    } finally {
      process.chdir(current)
    }
  })
})
