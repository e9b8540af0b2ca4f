/** The first module: where the browser blocks storage the others throw as they load, and the page would stay blank. */
try {
  localStorage.getItem('');
  sessionStorage.getItem('');
} catch (error) {
  document.body.textContent =
    'The Atoll console needs to store data in this browser, which blocks that for this site. Allow its site data (or ' +
    'cookies) in the settings of the browser, and load the page again. The API is documented at /api/docs.';
  throw error;
}
