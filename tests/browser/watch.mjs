// What no page may do: log errors, load from other hosts, request what does not exist, or violate its content policy.

/** Everything that went wrong, in the order in which it did. */
export const errors = [];

const expected = new WeakMap();

// Expected errors also appear on the console, sometimes after the page has loaded.
const stillToBeSaid = new WeakMap();

/** The answers with this status that a step means to provoke on a page. */
export const expecting = async (page, status, step) => {
  expected.set(page, status);
  stillToBeSaid.set(page, status);
  try {
    return await step();
  } finally {
    expected.delete(page);
  }
};

// A stream or request that ends because the page is left did not fail.
const isLeft = (request) => request.failure()?.errorText === 'net::ERR_ABORTED';

/** From here on whatever goes wrong on the page is written down. */
export const watch = (page, origin) => {
  const complain = (what) => errors.push(`${page.url().replace(origin, '')}: ${what}`);
  page.on('console', (message) => {
    if (!['error', 'warning'].includes(message.type())) return;
    const status = stillToBeSaid.get(page);
    if (status && message.text().includes(`status of ${status}`)) {
      stillToBeSaid.delete(page);
      return;
    }
    complain(`console ${message.type()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => complain(`script: ${error.message}`));
  page.on('requestfailed', (request) => {
    if (!isLeft(request)) complain(`failed: ${request.url()} ${request.failure()?.errorText}`);
  });
  page.on('response', (response) => {
    if (response.status() >= 400 && response.status() !== expected.get(page)) {
      complain(`${response.status()} from ${response.request().method()} ${response.url().replace(origin, '')}`);
    }
  });
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !/^(data|blob):/.test(url)) complain(`asked somebody else: ${url}`);
  });
};

/** Runs in every page before its own script. */
export const policyReports = () => {
  document.addEventListener('securitypolicyviolation', (event) => {
    console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`);
  });
};

/** A page that does everything that no page may do must be seen to do so, or the rest of this proves nothing. */
export const provesItself = async (context, origin) => {
  const page = await context.newPage();
  watch(page, origin);
  const headers = { 'content-security-policy': "default-src 'none'; script-src 'self'; connect-src *" };
  await page.route(`${origin}/bad-page`, (route) => route.fulfill({
    contentType: 'text/html',
    headers,
    body: '<p style="color: red">x</p><img src="/nothing.png"><script src="/bad.js"></script>',
  }));
  await page.route(`${origin}/bad.js`, (route) => route.fulfill({
    contentType: 'text/javascript',
    body: "fetch('/no-such-thing'); fetch('http://elsewhere.invalid/'); throw new Error('thrown');",
  }));
  await page.goto(`${origin}/bad-page`);
  const wanted = ['policy: style-src', 'script: thrown', '404 from', 'asked somebody else', 'failed: '];
  const missing = () => wanted.filter((what) => !errors.some((complaint) => complaint.includes(what)));
  for (let tries = 0; missing().length && tries < 500; tries += 1) await page.waitForTimeout(40);
  if (missing().length) throw new Error(`not seen on a bad page: ${missing()}\n${errors.join('\n')}`);
  await page.close();
  errors.length = 0;
};
