// The site of docs/, by VitePress (https://vitepress.dev): make docs-site
import { readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitepress'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const docs = join(root, 'docs')
const version = readFileSync(join(root, 'internal/version/VERSION'), 'utf8').trim()
const repository = 'https://github.com/modelbox-operator/modelbox-operator'
// Between two releases, the pages are those of the branch.
const files = `${repository}/blob/${version.endsWith('-dev') ? 'main' : version}`

// The sidebar is the start page: a group for each door, an entry for each page in the first column of its table.
function sidebar(folder) {
  const doors = readFileSync(join(docs, folder, 'README.md'), 'utf8').split(/^## /m).slice(1)
  return doors.map((door) => ({
    text: door.split('\n')[0],
    collapsed: false,
    items: [...door.matchAll(/^\| (\[.*?) \|/gm)].flatMap(([, cell]) =>
      [...cell.matchAll(/\[(.*?)\]\((.*?)\.md\)/g)].map(([, text, page]) => ({ text: text[0].toUpperCase() + text.slice(1), link: '/' + join(folder, page) }))),
  }))
}

// The one rule for links: what is outside of docs/ is a file of the repository, at this version.
function target(href, page) {
  if (/^([a-z]+:|#)/.test(href)) return href
  const file = relative(root, join(dirname(page), href))
  if (!file.startsWith('docs/')) return `${files}/${file}`
  return href.replace(/README\.md/, 'index.md')
}

function pages(md) {
  // The site has a table of contents beside each page.
  md.core.ruler.before('normalize', 'contents', (state) => {
    state.src = state.src.replace(/<!-- toc -->[^]*?<!-- \/toc -->\n/g, '')
  })
  md.core.ruler.push('pages', ({ tokens, env }) => {
    for (const token of tokens) {
      // A block that is indented is shown as one between fences: with colours, and without Vue's {{ }}.
      if (token.type === 'code_block') {
        Object.assign(token, { type: 'fence', info: /^(\w+|"?[\w.\/-]+"?):( |$)/m.test(token.content) && !/^\$ /m.test(token.content) ? 'yaml' : 'sh' })
      }
      for (const child of token.children ?? []) {
        if (child.type === 'link_open') child.attrSet('href', target(child.attrGet('href'), env.path))
        if (child.type === 'code_inline') child.attrSet('v-pre', '')
      }
    }
  })
}

const zh = {
  nav: [{ text: '教程', link: '/zh-CN/tutorial' }, { text: '安装', link: '/zh-CN/install' }, { text: version, link: `${files}/CHANGELOG.md` }],
  sidebar: sidebar('zh-CN'),
  outline: { level: [2, 3], label: '本页' },
  docFooter: { prev: '上一页', next: '下一页' },
  editLink: { pattern: ({ filePath }) => `https://github.com/modelbox-operator/modelbox-operator/edit/main/docs/${filePath}`, text: '编辑本页' },
  darkModeSwitchLabel: '深色模式', langMenuLabel: '语言', sidebarMenuLabel: '菜单', returnToTopLabel: '回到顶部',
}

export default defineConfig({
  title: 'ModelBox Operator',
  description: 'Model servers on Kubernetes: a few checked lines become a Deployment and a Service',
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  srcDir: docs,
  outDir: join(root, 'dist/site'),
  base: process.env.BASE ?? '/',
  // docs/ has no node_modules.
  vite: { resolve: { alias: ['vue/server-renderer', 'vue'].map((name) => ({ find: new RegExp(`^${name}$`), replacement: join(root, 'hack/site/node_modules', name) })) } },
  rewrites: { 'README.md': 'index.md', 'zh-CN/README.md': 'zh-CN/index.md' },
  markdown: {
    config: pages,
    // The anchors are those of GitHub.
    anchor: { slugify: (s) => s.trim().toLowerCase().replace(/[^\p{L}\p{N}_ -]/gu, '').replaceAll(' ', '-') },
  },
  locales: {
    root: { label: 'English', lang: 'en-US' },
    'zh-CN': { label: '简体中文', lang: 'zh-CN', link: '/zh-CN/', themeConfig: zh },
  },
  themeConfig: {
    nav: [{ text: 'Tutorial', link: '/tutorial' }, { text: 'Install', link: '/install' }, { text: version, link: `${files}/CHANGELOG.md` }],
    sidebar: sidebar(''),
    outline: [2, 3],
    editLink: { pattern: ({ filePath }) => `https://github.com/modelbox-operator/modelbox-operator/edit/main/docs/${filePath}` },
    socialLinks: [{ icon: 'github', link: repository }],
    i18nRouting: false, // Some pages are in one language; each that is in both has a link to the other.
    search: { provider: 'local', options: {
      locales: { 'zh-CN': { translations: { button: { buttonText: '搜索' }, modal: { noResultsText: '没有结果', resetButtonTitle: '清除', footer: { navigateText: '选择', selectText: '打开', closeText: '关闭' } } } } },
      miniSearch: {
        // Chinese has no spaces between words. The function runs in the browser too, so it uses nothing from here.
        options: { tokenize: (text) => text.split(/[\s\p{P}\p{S}]+/u).flatMap((word) => (/\p{Script=Han}/u.test(word)
          ? [...new Intl.Segmenter('zh', { granularity: 'word' }).segment(word)].map((s) => s.segment) : word)) },
        // Who looks for a reason or the text of an error has a problem.
        searchOptions: { boostDocument: (page) => (/\/(troubleshooting|refusals|alerts)\.html/.test(page) ? 3 : 1) },
      },
    } },
  },
})
