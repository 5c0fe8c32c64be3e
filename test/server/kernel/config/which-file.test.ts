import { describe, expect, test } from 'vitest'
import { ConfigError, loadConfig } from '../../../../server/start/config.ts'

function complaints(text: string): string[] {
  try {
    loadConfig({ file: 'c.toml', env: {}, readFile: () => new TextEncoder().encode(text) })
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n')
    throw error
  }
  return []
}

describe('the file', () => {
  test('is the one given, or the one CINNABAR_CONFIG names', () => {
    const asked: string[] = []
    const readFile = (file: string) => {
      asked.push(file)
      return new Uint8Array(0)
    }
    loadConfig({ file: 'given.toml', env: { CINNABAR_CONFIG: 'named.toml' }, readFile })
    loadConfig({ env: { CINNABAR_CONFIG: 'named.toml' }, readFile })
    loadConfig({ env: { CINNABAR_CONFIG: '' }, readFile })
    loadConfig({ env: {}, readFile })
    expect(asked).toEqual(['given.toml', 'named.toml'])
  })

  test('that is missing is a problem that names it', () => {
    const file = '/nonexistent/c.toml'
    expect(() => loadConfig({ file, env: {} })).toThrow(/^\/nonexistent\/c\.toml: cannot be read: ENOENT/)
  })

  test('that is not UTF-8 is refused', () => {
    const readFile = () => Uint8Array.of(0x61, 0xff)
    expect(() => loadConfig({ file: 'c.toml', env: {}, readFile })).toThrow('c.toml: not UTF-8 text')
  })

  test('that is not TOML is refused with line and column, and without quoting it', () => {
    const text = '[listen]\ntcp = "hunter2'
    expect(complaints(text)).toEqual(['c.toml:2: not TOML: unfinished string (column 7)'])
    expect(complaints('[log]\n[log]\n')).toEqual([expect.stringMatching(/^c\.toml:2: not TOML: trying to redefine/)])
  })
})
