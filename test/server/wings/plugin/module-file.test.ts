import { chmodSync, chownSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ConfigError } from '../../../../server/kernel/config/errors.ts'
import { checkModules, findModule } from '../../../../server/wings/plugin/module-file.ts'

let directory: string
beforeEach(() => {
  directory = realpathSync(mkdtempSync(join(tmpdir(), 'cinnabar-')))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

function file(name: string, mode = 0o644): string {
  const path = join(directory, name)
  writeFileSync(path, '')
  chmodSync(path, mode)
  return path
}

describe('a module', () => {
  test('is a path from the directory of the configuration, or an absolute one', () => {
    const path = file('a.js')
    mkdirSync(join(directory, 'in'))
    expect(findModule('./a.js', directory)).toBe(path)
    expect(findModule('../a.js', join(directory, 'in'))).toBe(path)
    expect(findModule(path, '/')).toBe(path)
  })

  test('is a package that is found from there', () => {
    const pack = join(directory, 'node_modules', '@acme', 'pack')
    mkdirSync(pack, { recursive: true })
    writeFileSync(join(pack, 'package.json'), '{ "exports": { ".": "./entry.js" } }')
    writeFileSync(join(pack, 'entry.js'), '')
    expect(findModule('@acme/pack', directory)).toBe(join(pack, 'entry.js'))
    expect(() => findModule('other', directory)).toThrow(
      /Cannot find module 'other': install the package there, or write/,
    )
  })

  test('is judged where a link leads', () => {
    symlinkSync(file('a.js', 0o666), join(directory, 'link.js'))
    expect(() => findModule('./link.js', directory)).toThrow(`${join(directory, 'a.js')} can be written by everybody`)
  })

  test.each([
    [0o666, /can be written by everybody \(chmod o-w\): its code would run/],
    [0o664, /can be written by its group \(chmod g-w\)/],
  ])('that others may write (%o) is refused, and so is one whose directory they may write', (mode, why) => {
    file('a.js', mode)
    expect(() => findModule('./a.js', directory)).toThrow(why)
    chmodSync(join(directory, 'a.js'), 0o600)
    chmodSync(directory, mode | 0o111)
    expect(() => findModule('./a.js', directory)).toThrow(why)
  })

  test('of another user is refused; ours and those of root are not', () => {
    const path = file('a.js')
    // Only root can give a file away.
    const owner = process.getuid?.() || 1234
    if (process.getuid?.() === 0) chownSync(path, owner, owner)
    expect(findModule('./a.js', directory, owner)).toBe(path)
    expect(() => findModule('./a.js', directory, owner + 1)).toThrow(`belongs to another user (uid ${owner})`)
  })

  test('may lie in a directory like /tmp, where others cannot replace it; for the file itself the bit means nothing', () => {
    const path = file('a.js')
    chmodSync(directory, 0o1777)
    expect(findModule('./a.js', directory)).toBe(path)
    chmodSync(path, 0o1666)
    expect(() => findModule('./a.js', directory)).toThrow('can be written by everybody')
  })

  test('that is no file is refused', () => {
    expect(() => findModule('./', directory)).toThrow('is not a file')
    expect(() => findModule('./missing.js', directory)).toThrow(/no such file/)
  })
})

test('everything that is wrong with the modules of a file is reported together', () => {
  file('good.js')
  const check = () =>
    checkModules([{ module: './a.js' }, { module: './good.js' }, { module: './b.js' }], join(directory, 'c.toml'))
  expect(check).toThrow(ConfigError)
  expect(check).toThrow(/^\[\[plugin\]\] \.\/a\.js: .*\n\[\[plugin\]\] \.\/b\.js: .*$/)
  expect(() => checkModules([{ module: './good.js' }], join(directory, 'c.toml'))).not.toThrow()
})
